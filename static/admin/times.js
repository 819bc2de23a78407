// Times in the reader's zone and language.

const dateAndTime = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
const timeOfDay = new Intl.DateTimeFormat(undefined, { hour: "numeric", minute: "2-digit" });

/** Return a moment as date and time. */
export const formatMoment = (moment) => dateAndTime.format(moment);

/** Return a moment as the time of day, with the date unless it is today. */
export const formatNearMoment = (moment) =>
  (moment.toDateString() === new Date().toDateString() ? timeOfDay : dateAndTime).format(moment);

/** Rewrite all times within an element in the reader's zone; the UTC time becomes the tooltip. */
export function localizeTimes(container) {
  for (const time of container.querySelectorAll("time[datetime]")) {
    time.title ||= time.textContent;
    time.textContent = formatMoment(new Date(time.dateTime));
  }
}
