// Recordings and videos: how often each item was played and how many of its seconds were heard, and whether that is as much
// as the campaign asks for. One plays at a time.
//
// What stands beside all items is counted with each of them. An item in `.playback` has what an earlier page of the same HIT
// counted.

import { all, announce } from "./page.js";
import * as playerKeys from "./player_keys.js";
import { keep, say } from "./sending.js";
import { words } from "./words.js";

const PLAYERS = ".content :is(audio, video)";
const ENOUGH_HEARD = 0.9;      // of the length, as app/designs/playback.py has it
const AT_START_S = 0.25;       // so near the beginning a play is a new one, and not the end of a pause
const JUMP_BACK_S = 0.5;       // where plays are limited, a larger jump back is a new play

export function begin(hit) {
  hit.playbacks = all(hit.fieldset, ".playback").map((note) => read(hit, note));
  for (const player of all(hit.fieldset, PLAYERS)) follow(hit, player);
  draw(hit);
  if (hit.form) playerKeys.begin(hit, all(hit.fieldset, PLAYERS));
  if (hit.form && hit.fieldset.dataset.switchSounds) import("./switching.js").then((switching) => switching.begin(hit));
}

function read(hit, note) {
  const { name, plays, heard, switches } = note.dataset;
  const shared = all(hit.fieldset, `.hit > .beside-items ${PLAYERS}`);
  const players = [...all(note.closest(".item"), PLAYERS), ...shared];
  const earlier = { plays: Number(plays || 0), heard: Number(heard || 0), switches: Number(switches || 0) };
  return { note, name, players, earlier };
}

function follow(hit, player) {
  player.plays = 0;
  player.addEventListener("play", () => {
    for (const other of all(hit.fieldset, PLAYERS)) if (other !== player) other.pause();
    if (!player.plays || player.currentTime < AT_START_S) startPlay(hit, player);
    draw(hit);
  });
  if (hit.playbacks.some(({ note }) => note.dataset.maxPlays)) limitJumps(hit, player);
  if (hit.playbacks.some(({ note }) => "loop" in note.dataset)) {
    player.addEventListener("ended", () => { if (!isUsedUp(hit, player)) player.play(); });
  }
  for (const event of ["timeupdate", "ended", "error", "loadedmetadata"]) player.addEventListener(event, () => draw(hit));
  player.addEventListener("pause", () => keepPlayed(hit));
}

/** Keep in the draft what was played. */
export function keepPlayed(hit) {
  hit.changed = true;
  if (hit.form) keep(hit);
}

/** Count a play, unless there is none left: then stop the player. */
export function startPlay(hit, player) {
  if (isUsedUp(hit, player)) {
    player.pause();
    announce(words("Plays left: %(count)s", { count: 0 }));
    return;
  }
  player.plays += 1;
  player.furthest = player.currentTime;
}

/** Let recordings that are played in another way stand in for their players. */
export function replacePlayers(hit, recordings) {
  for (const playback of hit.playbacks) playback.players = playback.players.map((player) => recordings.get(player) ?? player);
  draw(hit);
}

// An item that must be heard to its end can be played until it was: a page that was loaded again in between is no dead end.
export function isUsedUp(hit, player) {
  return hit.playbacks.some((playback) => playback.players.includes(player) && playback.note.dataset.maxPlays
    && playback.earlier.plays + player.plays >= Number(playback.note.dataset.maxPlays) && isPlayed(playback));
}

function limitJumps(hit, player) {
  player.addEventListener("timeupdate", () => { if (!player.seeking) player.furthest = Math.max(player.furthest ?? 0, player.currentTime); });
  player.addEventListener("seeking", () => {
    const isBack = player.plays && !player.paused && player.currentTime < player.furthest - JUMP_BACK_S;
    if (isBack && isUsedUp(hit, player)) player.currentTime = player.furthest;
    else if (isBack) startPlay(hit, player);
  });
}

const works = (player) => !player.error;
const length = (player) => (Number.isFinite(player.duration) ? player.duration : 0);

// Each second counts once, however often it was played.
function heard({ played }) {
  let seconds = 0;
  for (let range = 0; range < played.length; range += 1) seconds += played.end(range) - played.start(range);
  return seconds;
}

const sum = (numbers) => numbers.reduce((one, other) => one + other, 0);

function count({ players, earlier }) {
  const working = players.filter(works);
  return {
    plays: working.length ? earlier.plays + Math.min(...working.map(({ plays }) => plays)) : null,
    heard: Math.min(Math.max(earlier.heard, sum(working.map(heard))), sum(working.map(length)) || Infinity),
    length: sum(working.map(length)),
    switches: working.some(({ switches }) => switches !== undefined)
      ? earlier.switches + sum(working.map(({ isBeside, switches = 0 }) => (isBeside ? 0 : switches))) : null,
  };
}

// What does not load cannot be played, and is not asked for.
function isPlayed(playback) {
  const { plays, heard: seconds, length: whole } = count(playback);
  const { mustPlay } = playback.note.dataset;
  return plays === null || !mustPlay || (plays > 0 && (mustPlay !== "end" || seconds >= ENOUGH_HEARD * whole));
}

const isExempt = (hit, { name }) => Boolean(hit.form.elements.replaces || hit.form.elements[`unjudged-${name}`]?.value);
const unplayed = (hit) => hit.playbacks.filter((playback) => !isExempt(hit, playback) && !isPlayed(playback));

export function draw(hit) {
  for (const playback of hit.playbacks) {
    const done = isPlayed(playback);
    const { mustPlay, maxPlays } = playback.note.dataset;
    playback.note.querySelector(".to-play").hidden = done;
    playback.note.querySelector(".was-played").hidden = !done || !mustPlay;
    if (maxPlays) drawLimit(playback);
  }
  if (hit.asksToPlay && !unplayed(hit).length) {
    hit.asksToPlay = false;
    hit.draw();  // the line beside the button says something else again
  }
}

function drawLimit({ note, players, earlier }) {
  const left = Math.max(0, Number(note.dataset.maxPlays) - earlier.plays - Math.max(0, ...players.map(({ plays }) => plays)));
  note.querySelector(".plays-left").textContent = words("Plays left: %(count)s", { count: left });
}

/** True where all was played; else the first that was not has the focus, and the page says so. */
export function ready(hit) {
  const [first] = unplayed(hit);
  if (!first) return true;
  const message = first.note.dataset.mustPlay === "end" ? words("Play everything to the end first") : words("Play everything first");
  first.players.filter(works).find((player) => !player.plays)?.focus() ?? first.players[0].focus();
  say(hit, message);
  hit.asksToPlay = true;
  announce(`${message}.`);
  return false;
}

/** [name, value] of what is sent; nothing of what was not counted. */
export const fields = (hit) => hit.playbacks.map((playback) => [playback.name, count(playback)]).filter(([, { plays }]) => plays !== null)
  .flatMap(([name, counted]) => [
    [`plays-${name}`, counted.plays],
    ...(counted.switches === null ? [] : [[`switches-${name}`, counted.switches]]),
    [`seconds_heard-${name}`, counted.heard.toFixed(2)], [`seconds_long-${name}`, counted.length.toFixed(2)],
  ]);

/** The same for a draft, and from one. */
export const entries = (hit) => Object.fromEntries(
  fields(hit).filter(([name]) => !name.startsWith("seconds_long")).map(([name, value]) => [name, { value }]));

export function restore(hit, kept) {
  for (const { name, earlier } of hit.playbacks) {
    earlier.plays = Math.max(earlier.plays, Number(kept[`plays-${name}`]?.value ?? 0));
    earlier.heard = Math.max(earlier.heard, Number(kept[`seconds_heard-${name}`]?.value ?? 0));
    earlier.switches = Math.max(earlier.switches, Number(kept[`switches-${name}`]?.value ?? 0));
  }
  draw(hit);
}
