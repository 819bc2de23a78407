// Recordings between which people switch without a gap: decoded ahead, one of them heard, with a short crossfade. Where
// they cannot be decoded, are too long or, for the same position, differ in length, the browser's players stay.
//
// A `Recording` stands in for its player: `playback.js` counts both in the same way.

import { latinKey, taken, withModifier } from "./keys.js";
import { all } from "./page.js";
import { draw, keepPlayed, replacePlayers, startPlay } from "./playback.js";
import * as playerKeys from "./player_keys.js";
import { words } from "./words.js";

const MAX_RECORDINGS = 12;
const MAX_SECONDS = 60;
const SAME_LENGTH_S = 0.05;    // lengths that differ by less are the same
const FADE_S = 0.005;
const AT_END_S = 0.01;         // so near the end a recording starts at its beginning
const TICK_MS = 100;

let context = null;            // one for the page: a browser allows few
let deck = null;               // the recordings of the HIT on the page: {hit, recordings, current, source, position, ...}

document.addEventListener("easel:replaced", () => { if (deck) silence(); deck = null; });
document.addEventListener("keydown", press);

export async function begin(hit) {
  const players = all(hit.fieldset, ".content :is(audio, video)");
  const buffers = await decodeAll(players, hit.fieldset.dataset.switchSounds).catch(() => null);
  if (!buffers || !hit.fieldset.isConnected) return;
  const recordings = players.map((player, place) => new Recording(player, buffers[place], place));
  deck = { hit, recordings, current: null, source: null, position: 0, keepsPosition: hit.fieldset.dataset.switchSounds === "same position" };
  deck.loops = hit.playbacks.some(({ note }) => "loop" in note.dataset);
  replacePlayers(hit, new Map(players.map((player, place) => [player, recordings[place]])));
  for (const recording of recordings) recording.takeOver();
  playerKeys.end(hit);
  for (const key of all(hit.fieldset, ".sound-key")) key.hidden = "reference" in key.dataset && !reference();
}

// ---- Decoding ----

async function decodeAll(players, mode) {
  if (players.length < 2 || players.length > MAX_RECORDINGS || !window.AudioContext) return null;
  if (!players.every((player) => player.matches("audio"))) return null;
  await Promise.all(players.map(metadata));
  if (players.some(({ duration }) => !(duration <= MAX_SECONDS))) return null;
  context ??= new AudioContext();
  const buffers = await Promise.all(players.map(decode));
  const lengths = buffers.map(({ duration }) => duration);
  const isSameLength = Math.max(...lengths) - Math.min(...lengths) <= SAME_LENGTH_S;
  return mode === "same position" && !isSameLength ? null : buffers;
}

const metadata = (player) => new Promise((resolve, reject) => {
  if (player.error) reject(player.error);
  else if (player.readyState >= HTMLMediaElement.HAVE_METADATA) resolve();
  player.addEventListener("loadedmetadata", resolve, { once: true });
  player.addEventListener("error", reject, { once: true });
});

async function decode(player) {
  const reply = await fetch(player.src);
  if (!reply.ok) throw new Error(reply.statusText);
  return context.decodeAudioData(await reply.arrayBuffer());
}

// ---- One recording, with the properties of a player ----

class Recording {
  constructor(player, buffer, place) {
    const beside = player.closest(".beside-items > div");
    Object.assign(this, { player, buffer, plays: player.plays, switches: 0, heard: [] });
    this.isBeside = Boolean(beside);
    this.isReference = beside?.querySelector("dt").textContent === "Reference";
    this.name = beside?.querySelector("dt").textContent ?? nameOf(player) ?? String(place + 1);
    for (let range = 0; range < player.played.length; range += 1) this.addHeard(player.played.start(range), player.played.end(range));
  }

  get duration() { return this.buffer.duration; }
  get currentTime() { return deck.position; }
  get error() { return null; }

  get played() {
    const ranges = deck.source && deck.current === this ? merge([...this.heard, [deck.from, position()]]) : this.heard;
    return { length: ranges.length, start: (range) => ranges[range][0], end: (range) => ranges[range][1] };
  }

  addHeard(from, to) { this.heard = merge([...this.heard, [from, to]]); }
  pause() { if (deck.current === this) stop(); }
  focus() { this.button.focus(); }

  /** Put a button in the place of the player. */
  takeOver() {
    this.player.pause();
    this.button = Object.assign(document.createElement("button"), { type: "button", className: "sound" });
    this.button.setAttribute("aria-label", words("Play %(name)s", { name: this.name }));
    this.button.addEventListener("click", () => (deck.source && deck.current === this ? stop() : play(this)));
    this.player.hidden = true;
    this.player.after(this.button);
    this.draw();
  }

  draw() {
    const isHeard = Boolean(deck.source) && deck.current === this;
    this.button.textContent = `${isHeard ? "■" : "▶"} ${this.name}`;
    this.button.setAttribute("aria-pressed", String(isHeard));
    const isAtPosition = deck.current === this || deck.keepsPosition;
    this.button.style.setProperty("--at", isAtPosition ? Math.min(1, position() / this.duration) : 0);
  }
}

const nameOf = (player) => player.closest(".side")?.querySelector(".side-name").textContent ?? player.closest("[data-letter]")?.dataset.letter;

function merge(ranges) {
  const merged = [];
  for (const [from, to] of [...ranges].sort(([one], [other]) => one - other)) {
    const last = merged.at(-1);
    if (last && from <= last[1]) last[1] = Math.max(last[1], to);
    else merged.push([from, to]);
  }
  return merged;
}

// ---- Playing: one at a time ----

/** The second that is heard, or at which the deck stands. */
function position() {
  return deck.source ? Math.min(deck.from + context.currentTime - deck.startedAt, deck.current.duration) : deck.position;
}

function play(recording) {
  context.resume();
  deck.position = deck.keepsPosition ? position() : 0;
  if (deck.position > recording.duration - AT_END_S) deck.position = 0;
  silence();
  if (deck.current && deck.current !== recording) recording.switches += 1;
  deck.current = recording;
  const plays = recording.plays;
  if (!plays || deck.position === 0) startPlay(deck.hit, recording);
  if (recording.plays === plays && (!plays || deck.position === 0)) return redraw();
  sound(recording);
  keepPlayed(deck.hit);
  redraw();
}

function sound(recording) {
  const source = Object.assign(context.createBufferSource(), { buffer: recording.buffer });
  const gain = context.createGain();
  gain.gain.setValueAtTime(0, context.currentTime);
  gain.gain.linearRampToValueAtTime(1, context.currentTime + FADE_S);
  source.connect(gain).connect(context.destination);
  source.onended = () => { if (deck?.source === source) finish(); };
  source.start(0, deck.position);
  Object.assign(deck, { source, gain, from: deck.position, startedAt: context.currentTime, timer: setInterval(redraw, TICK_MS) });
}

/** Fade out what is heard, and count it. */
function silence() {
  if (!deck.source) return;
  deck.position = position();
  deck.current.addHeard(deck.from, deck.position);
  clearInterval(deck.timer);
  deck.gain.gain.cancelScheduledValues(context.currentTime);
  deck.gain.gain.setValueAtTime(1, context.currentTime);
  deck.gain.gain.linearRampToValueAtTime(0, context.currentTime + FADE_S);
  deck.source.stop(context.currentTime + FADE_S);
  deck.source = null;
}

function stop() {
  silence();
  keepPlayed(deck.hit);
  redraw();
}

/** A recording has come to its end: it starts again in a loop. */
function finish() {
  deck.current.addHeard(deck.from, deck.current.duration);
  clearInterval(deck.timer);
  Object.assign(deck, { source: null, position: 0 });
  keepPlayed(deck.hit);
  if (deck.loops) play(deck.current);
  else redraw();
}

function redraw() {
  for (const recording of deck.recordings) recording.draw();
  draw(deck.hit);
}

// ---- Keys, where no answer uses them ----

const reference = () => deck.recordings.find(({ isReference }) => isReference);

function press(event) {
  if (!deck || event.defaultPrevented || event.repeat || deck.hit.sending || taken(event) || withModifier(event)) return;
  if (event.key === " ") pressSpace(event);
  else {
    const recording = recordingOfKey(latinKey(event));
    if (recording) play(recording);
  }
}

function pressSpace(event) {
  if (event.target.matches(playerKeys.USES_SPACE)) return;
  event.preventDefault();
  if (deck.source) stop();
  else play(deck.current ?? deck.recordings.find(({ isBeside }) => !isBeside));
}

function recordingOfKey(key) {
  const { fieldset } = deck.hit;
  if (!/^[a-z]$/.test(key) || fieldset.querySelector(`[data-key="${key}"]`)) return undefined;
  if (key === "r") return reference();
  if (fieldset.querySelector("[data-letter]")) return undefined;               // letters are for rows
  return deck.recordings.find(({ isBeside, name }) => !isBeside && name.toLowerCase() === key);
}
