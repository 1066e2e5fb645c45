// What can be said of bytes that are no whole head, without reading it.

const CARRIAGE_RETURN = 13;
const LINE_FEED = 10;

/** A head ends with a line: where none has come, there is nothing new to find out. */
export function hasLineFeed(chunk: Buffer, length: number): boolean {
  const index = chunk.indexOf(LINE_FEED);
  return index !== -1 && index < length;
}

/** Nothing of a head is there, but the line that may stand before it. */
export function isEmptyLine(bytes: Buffer, start: number, end: number): boolean {
  return end - start <= 2 && bytes[start] === CARRIAGE_RETURN;
}
