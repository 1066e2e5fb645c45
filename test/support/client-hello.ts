// Client hellos of TLS, put together from their parts, right or wrong.

export interface HelloParts {
  /** Undefined for no extension. */
  readonly serverName?: string | Buffer;
  readonly protocols?: readonly string[];
  /** Others, in front. */
  readonly extensions?: readonly Buffer[];
  readonly session?: number;
  readonly ciphers?: number;
  readonly compressions?: number;
  /** Behind the extensions, and not counted with them. */
  readonly tail?: Buffer;
}

export function lengthed(size: 1 | 2 | 3, content: Buffer, claimed = content.length): Buffer {
  const head = Buffer.alloc(size);
  head.writeUIntBE(claimed, 0, size);
  return Buffer.concat([head, content]);
}

export function extension(type: number, content: Buffer): Buffer {
  return Buffer.concat([Buffer.from([type >>> 8, type & 0xff]), lengthed(2, content)]);
}

export function serverNameExtension(name: string | Buffer): Buffer {
  const host = Buffer.concat([Buffer.from([0]), lengthed(2, Buffer.from(name))]);
  return extension(0, lengthed(2, host));
}

export function protocolsExtension(protocols: readonly string[]): Buffer {
  const list = Buffer.concat(protocols.map((protocol) => lengthed(1, Buffer.from(protocol, 'latin1'))));
  return extension(16, lengthed(2, list));
}

/** The message, without records. */
export function helloMessage(parts: HelloParts = {}): Buffer {
  const { serverName, protocols, session = 32, ciphers = 4, compressions = 1, tail = Buffer.alloc(0) } = parts;
  const extensions = [...(parts.extensions ?? [])];
  if (serverName !== undefined) extensions.push(serverNameExtension(serverName));
  if (protocols !== undefined) extensions.push(protocolsExtension(protocols));
  const body = Buffer.concat([
    Buffer.from([3, 3]),
    Buffer.alloc(32, 7),
    lengthed(1, Buffer.alloc(session, 1)),
    lengthed(2, Buffer.alloc(ciphers, 0x13)),
    lengthed(1, Buffer.alloc(compressions)),
    ...(extensions.length === 0 ? [] : [lengthed(2, Buffer.concat(extensions))]),
    tail,
  ]);
  return Buffer.concat([Buffer.from([1]), lengthed(3, body)]);
}

export function record(content: Buffer, type = 22): Buffer {
  return Buffer.concat([Buffer.from([type, 3, 1]), lengthed(2, content)]);
}

/** In records that end at the given places, and one for the rest. */
export function inRecords(message: Buffer, ends: readonly number[] = []): Buffer {
  const places = [0, ...new Set(ends.filter((end) => end > 0 && end < message.length)), message.length].toSorted(
    (a, b) => a - b,
  );
  return Buffer.concat(places.slice(1).map((end, index) => record(message.subarray(places[index], end))));
}

export function clientHello(parts: HelloParts = {}): Buffer {
  return inRecords(helloMessage(parts));
}
