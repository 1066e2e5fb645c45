// Calls of gRPC with texts for messages, by `@grpc/grpc-js`, and a service for them; messages on the wire by hand.

import {
  type CallOptions,
  type Client,
  type ClientDuplexStream,
  Metadata,
  Server,
  ServerCredentials,
  type ServerDuplexStream,
  type StatusObject,
  status,
} from '@grpc/grpc-js';

const HEAD_BYTES = 5;

export const write = (text: string): Buffer => Buffer.from(text);
export const read = (bytes: Buffer): string => bytes.toString();

/** Takes the whole messages off the beginning of a body. */
export function takeMessages(body: Buffer): { readonly messages: Buffer[]; readonly rest: Buffer } {
  const messages: Buffer[] = [];
  let at = 0;
  while (body.length - at >= HEAD_BYTES && body.length - at - HEAD_BYTES >= body.readUInt32BE(at + 1)) {
    const end = at + HEAD_BYTES + body.readUInt32BE(at + 1);
    messages.push(body.subarray(at + HEAD_BYTES, end));
    at = end;
  }
  return { messages, rest: body.subarray(at) };
}

export function framed(text: string): Buffer {
  const head = Buffer.alloc(HEAD_BYTES);
  head.writeUInt32BE(Buffer.byteLength(text), 1);
  return Buffer.concat([head, Buffer.from(text)]);
}

/** The methods: what they answer to each message, and to all of them. */
export const METHODS: Readonly<
  Record<string, { readonly each?: (text: string) => string[]; readonly all?: (texts: string[]) => string[] }>
> = {
  '/test.Service/Echo': { each: (text) => [text] },
  '/test.Service/Many': { each: (text) => [`${text}1`, `${text}2`, `${text}3`] },
  '/test.Service/Join': { all: (texts) => [texts.join('+')] },
};

export interface GrpcService {
  readonly port: number;
  readonly close: () => void;
}

/** METHODS, and `Refuse`, by a server of gRPC over HTTP/2. */
export async function grpcService(): Promise<GrpcService> {
  const server = new Server();
  const definition = (name: string) => ({
    path: `/test.Service/${name}`,
    requestStream: true as const,
    responseStream: true as const,
    requestSerialize: write,
    requestDeserialize: read,
    responseSerialize: write,
    responseDeserialize: read,
  });
  const answer = (name: string) => (call: ServerDuplexStream<string, string>) => {
    const { each, all } = METHODS[`/test.Service/${name}`]!;
    const texts: string[] = [];
    call.on('data', (text: string) => {
      texts.push(text);
      for (const line of each?.(text) ?? []) call.write(line);
    });
    call.on('end', () => {
      for (const line of all?.(texts) ?? []) call.write(line);
      const trailers = new Metadata();
      trailers.set('x-end', 'yes');
      call.end(trailers);
    });
  };
  const refuse = (call: ServerDuplexStream<string, string>): void => {
    call.emit('error', { code: status.PERMISSION_DENIED, details: 'not ü' });
  };
  const names = ['Echo', 'Many', 'Join'];
  server.addService(Object.fromEntries([...names, 'Refuse'].map((name) => [name, definition(name)])), {
    ...Object.fromEntries(names.map((name) => [name, answer(name)])),
    Refuse: refuse,
  });
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  return { port, close: () => server.forceShutdown() };
}

/** The four kinds, and a method that each of them may call. */
export const KINDS = {
  unary: '/test.Service/Echo',
  'server stream': '/test.Service/Many',
  'client stream': '/test.Service/Join',
  'stream both ways': '/test.Service/Echo',
} as const;
export type CallKind = keyof typeof KINDS;

export interface OpenCall {
  /** Says one more text, where the kind lets it. */
  say(text: string): void;
  /** The client has said all. */
  end(): void;
  cancel(): void;
  readonly answers: string[];
  /** Comes with the head of the response, unless that is all of it. */
  readonly begun: Promise<void>;
  readonly ended: Promise<StatusObject>;
}

/** Begins a call with one text; those that send only that one have ended their side with it. */
export function openCall(
  client: Client,
  kind: CallKind,
  text: string,
  { fields = {}, ...options }: CallOptions & { readonly fields?: Readonly<Record<string, string>> } = {},
): OpenCall {
  const answers: string[] = [];
  const begun = Promise.withResolvers<void>();
  const take = (answer: string): void => void answers.push(answer);
  const method = KINDS[kind];
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(fields)) metadata.set(name, value);
  const onAnswer = (_error: unknown, answer?: string): void => {
    if (answer !== undefined) take(answer);
  };
  const isSendingMany = kind === 'client stream' || kind === 'stream both ways';
  const call = {
    unary: () => client.makeUnaryRequest(method, write, read, text, metadata, options, onAnswer),
    'server stream': () => client.makeServerStreamRequest(method, write, read, text, metadata, options),
    'client stream': () => client.makeClientStreamRequest(method, write, read, metadata, options, onAnswer),
    'stream both ways': () => client.makeBidiStreamRequest(method, write, read, metadata, options),
  }[kind]();
  const sender = isSendingMany ? (call as ClientDuplexStream<string, string>) : null;
  const ended = new Promise<StatusObject>((resolve) => {
    call.on('status', (told: StatusObject) => {
      // What came before the status is told by then.
      setImmediate(() => resolve(told));
    });
  });
  call.on('error', () => {});
  call.on('data', take);
  call.on('metadata', () => begun.resolve());
  sender?.write(text);
  return {
    say: (more) => void sender?.write(more),
    end: () => void sender?.end(),
    cancel: () => call.cancel(),
    answers,
    begun: begun.promise,
    ended,
  };
}
