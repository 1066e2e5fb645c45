// Client hellos of TLS, put together from their parts, right or wrong.

export interface HelloParts {
  /** Undefined for no extension. */
  readonly serverName?: string | Buffer;
  readonly protocols?: readonly string[];
  /** Others, in front. */
  readonly extensions?: readonly Buffer[];
  readonly session?: number;
  /** So many bytes, or codes. */
  readonly ciphers?: number | readonly number[];
  readonly version?: number;
  readonly compressions?: number;
  /** Behind the extensions, and not counted with them. */
  readonly tail?: Buffer;
}

export function lengthed(size: 1 | 2 | 3, content: Buffer, claimed = content.length): Buffer {
  const head = Buffer.alloc(size);
  head.writeUIntBE(claimed, 0, size);
  return Buffer.concat([head, content]);
}

/** Of two bytes each. */
export function codes(values: readonly number[]): Buffer {
  return Buffer.concat(values.map((value) => Buffer.from([value >>> 8, value & 0xff])));
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
  const {
    serverName,
    protocols,
    session = 32,
    ciphers = 4,
    version = 0x0303,
    compressions = 1,
    tail = Buffer.alloc(0),
  } = parts;
  const extensions = [...(parts.extensions ?? [])];
  if (serverName !== undefined) extensions.push(serverNameExtension(serverName));
  if (protocols !== undefined) extensions.push(protocolsExtension(protocols));
  const body = Buffer.concat([
    codes([version]),
    Buffer.alloc(32, 7),
    lengthed(1, Buffer.alloc(session, 1)),
    lengthed(2, typeof ciphers === 'number' ? Buffer.alloc(ciphers, 0x13) : codes(ciphers)),
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

/** RFC 8448, section 3: "Simple 1-RTT Handshake". */
export const RFC_8448 = Buffer.from(
  `16030100c4010000c00303cb34ecb1e78163ba1c38c6dacb196a6dffa21a8d9912ec18a2ef6283024dece7000006130113031302010000910000
   000b0009000006736572766572ff01000100000a00140012001d0017001800190100010101020103010400230000003300260024001d00209938
   1de560e4bd43d23d8e435a7dbafeb3c06e51c13cae4d5413691e529aaf2c002b0003020304000d0020001e040305030603020308040805080604
   01050106010201040205020602020 2002d00020101001c00024001`.replaceAll(/\s/g, ''),
  'hex',
);
