// The list of files in a zip, which is at its end. A zip itself may have a gigabyte, so it is sent only to be imported.

const END_RECORD_BYTES = 22;
const MAX_COMMENT_BYTES = 65_535;
const END_RECORD_SIGNATURE = 0x06054b50;

/** Return the end of a zip, from the start of its directory. */
export async function zipDirectory(zip) {
  const tail = new DataView(await zip.slice(-(END_RECORD_BYTES + MAX_COMMENT_BYTES)).arrayBuffer());
  let start = tail.byteLength - END_RECORD_BYTES;
  while (start >= 0 && tail.getUint32(start, true) !== END_RECORD_SIGNATURE) start--;
  const directoryBytes = start < 0 ? 0 : tail.getUint32(start + 12, true);
  return zip.slice(-(tail.byteLength - Math.max(start, 0) + directoryBytes));
}
