// Chunked bodies once more, over the whole body as one string: the twin of ChunkScanner.

export interface ChunkedResult {
  /** Bytes up to the end of the body. */
  readonly length: number;
  readonly data: string;
  /** Names in lower case. */
  readonly trailers: readonly (readonly [name: string, value: string])[];
}

const TOKEN = "[!#$%&'*+\\-.^_`|~0-9A-Za-z]+";
const EXTENSION = `;${TOKEN}(?:=(?:${TOKEN}|"(?:[\\t\\x20\\x21\\x23-\\x5b\\x5d-\\x7e]|\\\\[\\t\\x20-\\x7e])*"))?`;
const SIZE_LINE = new RegExp(`([0-9A-Fa-f]{1,13})((?:${EXTENSION})*)\\r\\n`, 'y');
const TRAILER = new RegExp(`(${TOKEN}):([\\t\\x20-\\x7e\\x80-\\xff]*)\\r\\n`, 'y');
const FORBIDDEN =
  /^(transfer-encoding|content-length|host|connection|keep-alive|proxy-connection|te|trailer|upgrade|expect|max-forwards|content-(encoding|type|range)|(proxy-)?authorization|(www|proxy)-authenticate|(set-)?cookie|forwarded|x-forwarded-(for|host|port|proto|client-cert)|x-real-ip)$/i;

function matchAt(pattern: RegExp, text: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at;
  return pattern.exec(text);
}

/** Length and data of the body that starts the text, or undefined when it is wrong or does not end in it. */
export function decodeChunked(text: string): ChunkedResult | undefined {
  let at = 0;
  let data = '';
  for (;;) {
    const line = matchAt(SIZE_LINE, text, at);
    if (line === null || line[2]!.length > 1024) return undefined;
    at += line[0].length;
    const size = Number.parseInt(line[1]!, 16);
    if (size === 0) break;
    data += text.slice(at, at + size);
    at += size;
    if (text.slice(at, at + 2) !== '\r\n') return undefined;
    at += 2;
  }
  const trailers: (readonly [string, string])[] = [];
  for (let trailer = matchAt(TRAILER, text, at); trailer !== null; trailer = matchAt(TRAILER, text, at)) {
    if (FORBIDDEN.test(trailer[1]!)) return undefined;
    trailers.push([trailer[1]!.toLowerCase(), trailer[2]!.replace(/^[ \t]+|[ \t]+$/g, '')]);
    at += trailer[0].length;
  }
  return text.slice(at, at + 2) === '\r\n' ? { length: at + 2, data, trailers } : undefined;
}
