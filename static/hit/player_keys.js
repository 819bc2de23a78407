// Space plays or stops a recording or video in the browser's own player, wherever no control uses the key. The player does
// not get the focus: there, Enter and the arrow keys would be its own.

import { taken, withModifier } from "./keys.js";
import { all } from "./page.js";

export const USES_SPACE = "button, summary, a, audio, video, select, textarea, input:not([type=range], [type=radio]:checked)";

let deck = null;               // {hit, players, last} of the HIT on the page

document.addEventListener("easel:replaced", () => { deck = null; });
document.addEventListener("keydown", press);

export function begin(hit, players) {
  if (!players.length) return;
  deck = { hit, players, last: null };
  for (const player of players) player.addEventListener("play", () => { if (deck?.hit === hit) deck.last = player; });
  for (const key of all(hit.fieldset, ".space-key, .player-key")) key.hidden = false;
}

/** Leave the keys to recordings that are played in another way. */
export function end(hit) {
  deck = null;
  for (const key of all(hit.fieldset, ".player-key")) key.hidden = true;
}

function press(event) {
  if (!deck || event.key !== " " || event.defaultPrevented || event.repeat || deck.hit.sending) return;
  if (taken(event) || withModifier(event) || event.target.matches(USES_SPACE)) return;
  event.preventDefault();
  const playing = deck.players.find(({ paused }) => !paused);
  if (playing) playing.pause();
  else nextPlayer()?.play().catch(() => {});   // the page says by itself what does not load
}

/** Return the player that was stopped; else the first that was not played; else the last one again. */
function nextPlayer() {
  const { players, last } = deck;
  if (last && !last.ended && !last.error) return last;
  return players.find(({ plays, error }) => !plays && !error) ?? last ?? players[0];
}
