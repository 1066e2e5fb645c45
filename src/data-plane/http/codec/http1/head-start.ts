// What can be said of bytes that are no whole head, without reading it.

const CARRIAGE_RETURN = 13;
const LINE_FEED = 10;
const HTTP_1_0 = ' HTTP/1.0';

/** A head ends with a line: where none has come, there is nothing new to find out. */
export function hasLineFeed(chunk: Buffer, length: number): boolean {
  const index = chunk.indexOf(LINE_FEED);
  return index !== -1 && index < length;
}

/** The first line, if it is there, is that of a request of HTTP/1.0. An empty line may stand before it. */
export function isOfHttp10(bytes: Buffer): boolean {
  const start = bytes[0] === CARRIAGE_RETURN && bytes[1] === LINE_FEED ? 2 : 0;
  const end = bytes.indexOf(LINE_FEED, start);
  if (end === -1) return false;
  const lineEnd = bytes[end - 1] === CARRIAGE_RETURN ? end - 1 : end;
  return bytes.toString('latin1', Math.max(start, lineEnd - HTTP_1_0.length), lineEnd) === HTTP_1_0;
}

/** Nothing of a head is there, but the line that may stand before it. */
export function isEmptyLine(bytes: Buffer, start: number, end: number): boolean {
  return end - start <= 2 && bytes[start] === CARRIAGE_RETURN;
}
