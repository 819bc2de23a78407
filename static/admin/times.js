// Times in the reader's zone and language.

const dateAndTime = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
const timeOfDay = new Intl.DateTimeFormat(undefined, { hour: "numeric", minute: "2-digit" });

/** Return a moment as date and time. */
export const formatMoment = (moment) => dateAndTime.format(moment);

/** Return a moment as the time of day, with the date unless it is today. */
export const formatNearMoment = (moment) =>
  (moment.toDateString() === new Date().toDateString() ? timeOfDay : dateAndTime).format(moment);

/** Return how long ago a moment was, such as `26 min ago`; older moments as date and time. Like `describe_age`. */
export function formatAge(moment) {
  const minutes = Math.floor(Math.max(0, Date.now() - moment) / 60_000);
  if (minutes < 1) return "just now";
  if (minutes < 90) return `${minutes} min ago`;
  if (Math.round(minutes / 60) < 36) return `${Math.round(minutes / 60)} h ago`;
  return Math.round(minutes / 1440) <= 14 ? `${Math.round(minutes / 1440)} days ago` : formatMoment(moment);
}

/** Rewrite all times within an element in the reader's zone; the UTC time becomes the tooltip. */
export function localizeTimes(container) {
  for (const time of container.querySelectorAll("time[datetime]")) {
    time.title ||= time.textContent;
    const moment = new Date(time.dateTime);
    const format = "ago" in time.dataset ? formatAge : "near" in time.dataset ? formatNearMoment : formatMoment;
    time.textContent = format(moment);
  }
}
