// Heads and bodies with faults in them, the same ones for the same seed.

/** mulberry32: 32 bits of state, even enough for choosing faults. */
export class SeededRandom {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** An integer in [0, bound). */
  below(bound: number): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % bound;
  }

  of<T>(items: readonly T[]): T {
    return items[this.below(items.length)]!;
  }
}

/** Bytes that parsers disagree about, and pieces that change the meaning of a head. */
const BYTES = ['\0', '\t', '\n', '\v', '\r', ' ', '#', ',', ':', ';', '_', '\x7f', '\x80', '\xff', '\r\n', '\r\n\r\n'];
const LINES = [
  'Content-Length: 5\r\n',
  'content-length: 0\r\n',
  'Content-Length:\t7 \r\n',
  'Transfer-Encoding: chunked\r\n',
  'transfer-encoding: CHUNKED\r\n',
  'Transfer-Encoding: gzip, chunked\r\n',
  'Host: b.example:81\r\n',
  'HOST:\r\n',
  'Connection: close\r\n',
  'Connection: keep-alive, x-request-id, Upgrade\r\n',
  'Connection: host\r\n',
  'Upgrade: websocket\r\n',
  'Expect: 100-continue\r\n',
  'Keep-Alive: 5\r\n',
  'TE: trailers\r\n',
  'X-Envoy-Max-Retries: 2\r\n',
  'x_under_score: 1\r\n',
  ' folded\r\n',
  'X-Long-Header-Name-Of-More-Than-Forty-Eight-Characters: y\r\n',
  ': empty\r\n',
];

export const REQUEST_SEEDS = [
  'GET / HTTP/1.1\r\nHost: a\r\n\r\n',
  'GET /api/v1/items?id=42&sort=name HTTP/1.1\r\nHost: shop.example.com\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64)\r\nAccept: text/html,application/json;q=0.9\r\nAccept-Encoding: gzip, br\r\nCookie: session=0123456789abcdef; theme=dark\r\nConnection: keep-alive\r\n\r\n',
  'POST /upload HTTP/1.1\r\nHost: [2001:db8::1]:8080\r\nContent-Length: 1234\r\nContent-Type: application/octet-stream\r\nExpect: 100-continue\r\n\r\n',
  'PUT http://proxy.example/path HTTP/1.1\r\nHost: other\r\nTransfer-Encoding: chunked\r\nX-Forwarded-For: 10.0.0.1\r\nX-Forwarded-For: 10.0.0.2\r\n\r\n',
  'CONNECT db.example:5432 HTTP/1.1\r\nHost: db.example:5432\r\n\r\n',
  'OPTIONS * HTTP/1.0\r\nConnection: keep-alive\r\n\r\n',
  '\r\nDELETE /x HTTP/1.1\r\nhost: a.b\r\nconnection: upgrade, x-hop\r\nupgrade: websocket\r\nx-hop: 1\r\nX-Request-Id: 3f2c1d6e\r\n\r\n',
];

export const RESPONSE_SEEDS = [
  'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n',
  'HTTP/1.1 200 OK\r\nServer: backend/1.0\r\nDate: Sat, 01 Jan 2000 00:00:00 GMT\r\nContent-Type: text/html; charset=utf-8\r\nTransfer-Encoding: chunked\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nConnection: keep-alive\r\n\r\n',
  'HTTP/1.0 404 Not Found\r\nConnection: close\r\n\r\n',
  'HTTP/1.1 204\r\nX-Envoy-Upstream-Service-Time: 12\r\n\r\n',
  'HTTP/1.1 304 Not Modified\r\nETag: "x"\r\nContent-Length: 100\r\n\r\n',
  'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n',
  'HTTP/1.1 100 Continue\r\n\r\n',
];

export const CHUNKED_SEEDS = [
  '5\r\nhello\r\n0\r\n\r\n',
  '1f;name=value;q="a \\" b"\r\n0123456789012345678901234567890\r\nA\r\n0123456789\r\n0;end\r\nX-Sum: abc\r\nHosts: x\r\n\r\n',
  '2\r\nok\r\n2\r\nok\r\n000\r\nContent-Lengths: 5\r\n\r\nGET / HTTP/1.1\r\n',
];

function insertLine(text: string, random: SeededRandom): string {
  const starts = [...text.matchAll(/\r\n/g)].map((match) => match.index + 2);
  const at = starts.length === 0 ? 0 : random.of(starts);
  return text.slice(0, at) + random.of(LINES) + text.slice(at);
}

function mutateOnce(text: string, random: SeededRandom): string {
  const at = random.below(text.length + 1);
  switch (random.below(7)) {
    case 0:
      return text.slice(0, at) + random.of(BYTES) + text.slice(at);
    case 1:
      return text.slice(0, at) + random.of(BYTES) + text.slice(at + 1);
    case 2:
      return text.slice(0, at) + text.slice(at + 1 + random.below(3));
    case 3:
      return text.slice(0, at) + String.fromCharCode(random.below(256)) + text.slice(at + 1);
    case 4:
      return text.slice(0, at) + 'x'.repeat(random.below(40)) + text.slice(at);
    case 5:
      return text.slice(0, at);
    default:
      return insertLine(text, random);
  }
}

/** A seed with none to four faults. */
export function mutate(seeds: readonly string[], random: SeededRandom): string {
  let text = random.of(seeds);
  for (let count = random.below(5); count > 0; count -= 1) text = mutateOnce(text, random);
  return text;
}
