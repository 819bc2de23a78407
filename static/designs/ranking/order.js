// An order with ties, as a list: {item, tied}, the best first; tied: equal to the one above it. Pure.

export const places = (order) => {
  let place = 1;
  return order.map(({ tied }, at) => (tied ? place : (place = at + 1)));
};

// From [item, place] of those that have a place; equal ones in the order in which they come.
export function ordered(placed) {
  const sorted = [...placed].sort(([, a], [, b]) => a - b);
  return sorted.map(([item, place], at) => ({ item, tied: at > 0 && place === sorted[at - 1][1] }));
}

export const indexOf = (order, item) => order.findIndex((one) => one.item === item);

// Whoever was tied to it is now tied to the one above, if it was.
export function without(order, item) {
  const at = indexOf(order, item);
  if (at < 0) return order;
  return order.flatMap((one, k) => (k === at ? [] : [k === at + 1 ? { ...one, tied: one.tied && order[at].tied } : one]));
}

// Between two that are tied it is as they are; else it stands alone.
export function inserted(order, item, at) {
  return [...order.slice(0, at), { item, tied: Boolean(order[at]?.tied) }, ...order.slice(at)];
}

export function toggled(order, item) {
  return order.map((one, at) => (one.item === item && at > 0 ? { ...one, tied: !one.tied } : one));
}

// How many are below it, less those above: what a step up or down changes.
function standing(order, item) {
  const all = places(order);
  const mine = all[indexOf(order, item)];
  return all.filter((place) => place > mine).length - all.filter((place) => place < mine).length;
}

// One step up (-1) or down (1): into a tie and out of it are steps too. null where there is none.
export function stepped(order, item, by) {
  const rest = without(order, item);
  for (let at = indexOf(order, item); at >= 0 && at <= rest.length; at += by) {
    const next = inserted(rest, item, at);
    if (Math.sign(standing(order, item) - standing(next, item)) === by) return next;
  }
  return null;
}
