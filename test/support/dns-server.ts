// A DNS server on loopback whose answers a test sets: records with TTLs, aliases, names that do not exist, servers that
// fail, stay silent, cut their answers off or tell lies. UDP and TCP on one port. It knows as much of RFC 1035 as A and
// AAAA lookups need.
//
//   await using dns = await DnsServer.start();
//   dns.set('web.test', ['127.0.0.2', '::1'], 30);
//   resolver.servers = [{ ip: '127.0.0.1', port: dns.port }];

import { createSocket, type Socket as UdpSocket } from 'node:dgram';
import { once } from 'node:events';
import { type AddressInfo, createServer, isIPv4, type Server, type Socket } from 'node:net';

const HEADER_BYTES = 12;
const TYPE_A = 1;
const TYPE_CNAME = 5;
const TYPE_AAAA = 28;
const CLASS_IN = 1;
/** A name that begins where the question's does. */
const NAME_OF_QUESTION = Buffer.from([0xc0, 0x0c]);
const RESPONSE_FLAGS = 0x8180;
const TRUNCATED = 0x0200;
/** What fits into a UDP answer without extensions. */
const MAX_UDP_BYTES = 512;
const ADDITIONAL_COUNT_AT = 10;
const LENGTH_BYTES = 2;
const MAX_PORTS_TRIED = 20;
const RCODE = { NOERROR: 0, FORMERR: 1, SERVFAIL: 2, NXDOMAIN: 3, REFUSED: 5 } as const;

interface Entry {
  readonly ips: readonly string[];
  readonly ttlSeconds: number;
}

interface Question {
  readonly name: string;
  readonly type: number;
  /** End of the question section in the query. */
  readonly end: number;
}

export type DnsTransport = 'udp' | 'tcp';

/** What goes out instead of the true answer: several messages, or none. */
export type Tamper = (answer: Buffer, query: Buffer, transport: DnsTransport) => readonly Buffer[];

export class DnsServer implements AsyncDisposable {
  /** Names and types asked for, in order: `web.test A`; those over TCP end with ` TCP`. */
  readonly queries: string[] = [];
  /** Awaited before an answer over UDP; told the port that asks. */
  onUdpQuery: ((query: Buffer, port: number) => Promise<void>) | undefined;
  readonly #udp: UdpSocket;
  readonly #tcp: Server;
  readonly #connections = new Set<Socket>();
  readonly #entries = new Map<string, Entry>();
  readonly #aliases = new Map<string, { readonly target: string; readonly ttlSeconds: number }>();
  #failure: 'SERVFAIL' | 'REFUSED' | undefined;
  #tamper: Tamper | undefined;
  #onQuery: (() => void) | undefined;

  private constructor(udp: UdpSocket, tcp: Server) {
    this.#udp = udp;
    this.#tcp = tcp;
    udp.on('message', async (query, { port, address }) => {
      await this.onUdpQuery?.(query, port);
      for (const message of this.#answers(query, 'udp')) udp.send(message, port, address);
    });
    tcp.on('connection', (socket) => this.#serve(socket));
  }

  static async start(): Promise<DnsServer> {
    for (let tries = 1; ; tries += 1) {
      const tcp = createServer();
      tcp.listen(0, '127.0.0.1');
      await once(tcp, 'listening');
      const udp = createSocket('udp4');
      udp.bind((tcp.address() as AddressInfo).port, '127.0.0.1');
      try {
        await once(udp, 'listening');
        return new DnsServer(udp, tcp);
      } catch (error) {
        // A port that is free for TCP may be taken for UDP.
        udp.close();
        tcp.close();
        if (tries === MAX_PORTS_TRIED) throw error;
      }
    }
  }

  get port(): number {
    return this.#udp.address().port;
  }

  /** From now on a name has these addresses; an empty list makes a name that exists without any. */
  set(name: string, ips: readonly string[], ttlSeconds = 0): void {
    this.#entries.set(name, { ips, ttlSeconds });
  }

  /** From now on a name is another one, whose addresses come with it. */
  alias(name: string, target: string, ttlSeconds = 0): void {
    this.#aliases.set(name, { target, ttlSeconds });
  }

  unalias(name: string): void {
    this.#aliases.delete(name);
  }

  remove(name: string): void {
    this.#entries.delete(name);
  }

  /** Answers everything with this code, until told otherwise by undefined. */
  fail(code: 'SERVFAIL' | 'REFUSED' | undefined): void {
    this.#failure = code;
  }

  /** Replaces every answer, until told otherwise by undefined. */
  tamper(tamper: Tamper | undefined): void {
    this.#tamper = tamper;
  }

  /** The next question has come. */
  nextQuery(): Promise<void> {
    return new Promise((resolve) => {
      this.#onQuery = resolve;
    });
  }

  /** Idempotent. */
  async close(): Promise<void> {
    if (!this.#tcp.listening) return;
    const closed = Promise.all([once(this.#udp, 'close'), once(this.#tcp, 'close')]);
    this.#udp.close();
    this.#tcp.close();
    for (const socket of this.#connections) socket.destroy();
    await closed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #serve(socket: Socket): void {
    this.#connections.add(socket);
    let received = Buffer.alloc(0);
    socket.on('error', () => {});
    socket.on('close', () => this.#connections.delete(socket));
    socket.on('data', (chunk: Buffer) => {
      received = Buffer.concat([received, chunk]);
      if (received.length < LENGTH_BYTES || received.length < LENGTH_BYTES + received.readUInt16BE(0)) return;
      for (const message of this.#answers(received.subarray(LENGTH_BYTES), 'tcp')) {
        const length = Buffer.alloc(LENGTH_BYTES);
        length.writeUInt16BE(message.length);
        socket.write(Buffer.concat([length, message]));
      }
    });
  }

  #answers(query: Buffer, transport: DnsTransport): readonly Buffer[] {
    const whole = this.#answer(query, transport);
    const answer =
      transport === 'udp' && whole.length > (payloadOf(query) ?? MAX_UDP_BYTES) ? cutOff(whole, query) : whole;
    const answers = this.#tamper?.(answer, query, transport) ?? [answer];
    const onQuery = this.#onQuery;
    this.#onQuery = undefined;
    onQuery?.();
    return answers;
  }

  #answer(query: Buffer, transport: DnsTransport): Buffer {
    const question = readQuestion(query);
    const isV4 = question.type === TYPE_A;
    const type = isV4 ? 'A' : question.type === TYPE_AAAA ? 'AAAA' : question.type;
    this.queries.push(`${question.name} ${type}${transport === 'tcp' ? ' TCP' : ''}`);
    if (this.#failure !== undefined) return response(query, question, RCODE[this.#failure], []);
    const records: Buffer[] = [];
    let { name } = question;
    let owner: Buffer = NAME_OF_QUESTION;
    for (let alias = this.#aliases.get(name); alias !== undefined; alias = this.#aliases.get(name)) {
      const target = encodeName(alias.target);
      records.push(record(owner, TYPE_CNAME, alias.ttlSeconds, target));
      name = alias.target;
      owner = target;
      // A loop is told as far as it takes to be one.
      if (records.length > 20) break;
    }
    const entry = this.#entries.get(name);
    if (entry === undefined) return response(query, question, records.length > 0 ? 0 : RCODE.NXDOMAIN, records);
    for (const ip of entry.ips) {
      if (isIPv4(ip) !== isV4) continue;
      records.push(record(owner, question.type, entry.ttlSeconds, isV4 ? v4Bytes(ip) : v6Bytes(ip)));
    }
    return response(query, question, RCODE.NOERROR, records);
  }
}

export function encodeName(name: string): Buffer {
  const labels = name.split('.').map((label) => Buffer.concat([Buffer.from([label.length]), Buffer.from(label)]));
  return Buffer.concat([...labels, Buffer.from([0])]);
}

/** @param owner encoded name, or a pointer to one. */
export function record(owner: Buffer, type: number, ttlSeconds: number, data: Buffer): Buffer {
  const head = Buffer.alloc(10);
  head.writeUInt16BE(type, 0);
  head.writeUInt16BE(CLASS_IN, 2);
  head.writeUInt32BE(ttlSeconds, 4);
  head.writeUInt16BE(data.length, 8);
  return Buffer.concat([owner, head, data]);
}

/** An answer to the query with these records in place of the true ones. */
export function answerWith(query: Buffer, records: readonly Buffer[]): Buffer {
  return response(query, readQuestion(query), RCODE.NOERROR, records);
}

/** What an answer over UDP may have, by the EDNS record of the query; undefined without one. */
export function payloadOf(query: Buffer): number | undefined {
  const { end } = readQuestion(query);
  return query.readUInt16BE(ADDITIONAL_COUNT_AT) === 0 ? undefined : query.readUInt16BE(end + 3);
}

/** A server that does not understand the query says so. */
export function formatError(query: Buffer): Buffer {
  return response(query, readQuestion(query), RCODE.FORMERR, []);
}

function cutOff(answer: Buffer, query: Buffer): Buffer {
  const cut = Buffer.from(answer.subarray(0, readQuestion(query).end));
  cut.writeUInt16BE(cut.readUInt16BE(2) | TRUNCATED, 2);
  cut.writeUInt16BE(0, 6);
  return cut;
}

function readQuestion(query: Buffer): Question {
  const labels: string[] = [];
  let at = HEADER_BYTES;
  for (let length = query[at]!; length > 0; length = query[at]!) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length));
    at += length + 1;
  }
  return { name: labels.join('.').toLowerCase(), type: query.readUInt16BE(at + 1), end: at + 5 };
}

function response(query: Buffer, question: Question, rcode: number, records: readonly Buffer[]): Buffer {
  const header = Buffer.alloc(HEADER_BYTES);
  header.writeUInt16BE(query.readUInt16BE(0), 0);
  header.writeUInt16BE(RESPONSE_FLAGS | rcode, 2);
  header.writeUInt16BE(1, 4);
  header.writeUInt16BE(records.length, 6);
  return Buffer.concat([header, query.subarray(HEADER_BYTES, question.end), ...records]);
}

export function v4Bytes(ip: string): Buffer {
  return Buffer.from(ip.split('.').map(Number));
}

/** Takes `::` once, which is all that tests write. */
function v6Bytes(ip: string): Buffer {
  const [before = '', after = ''] = ip.split('::');
  const groups = (text: string): number[] =>
    text === '' ? [] : text.split(':').map((group) => Number.parseInt(group, 16));
  const head = groups(before);
  const tail = groups(after);
  const all = [...head, ...new Array<number>(8 - head.length - tail.length).fill(0), ...tail];
  const bytes = Buffer.alloc(16);
  for (const [index, group] of all.entries()) bytes.writeUInt16BE(group, index * 2);
  return bytes;
}
