// A DNS server on loopback whose answers a test sets: records with TTLs, names that do not exist, servers that fail
// or stay silent. It knows as much of RFC 1035 as c-ares needs for A and AAAA lookups.
//
//   await using dns = await DnsServer.start();
//   dns.set('web.test', ['127.0.0.2', '::1'], 30);
//   resolver.setServers([dns.address]);

import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { type AddressInfo, isIPv4 } from 'node:net';

const HEADER_BYTES = 12;
const TYPE_A = 1;
const TYPE_AAAA = 28;
const CLASS_IN = 1;
/** A name that begins where the question's does. */
const NAME_OF_QUESTION = 0xc00c;
const RESPONSE_FLAGS = 0x8180;
const RCODE = { NOERROR: 0, SERVFAIL: 2, NXDOMAIN: 3, REFUSED: 5 } as const;

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

export class DnsServer implements AsyncDisposable {
  /** Names and types asked for, in order: `web.test A`. */
  readonly queries: string[] = [];
  readonly #socket: Socket;
  readonly #entries = new Map<string, Entry>();
  #failure: 'SERVFAIL' | 'REFUSED' | undefined;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on('message', (query, { port, address }) => {
      const answer = this.#answer(query);
      socket.send(answer, port, address);
    });
  }

  static async start(): Promise<DnsServer> {
    const socket = createSocket('udp4');
    socket.bind(0, '127.0.0.1');
    await once(socket, 'listening');
    return new DnsServer(socket);
  }

  get port(): number {
    return (this.#socket.address() as AddressInfo).port;
  }

  get address(): string {
    return `127.0.0.1:${this.port}`;
  }

  /** From now on a name has these addresses; an empty list makes a name that exists without any. */
  set(name: string, ips: readonly string[], ttlSeconds = 0): void {
    this.#entries.set(name, { ips, ttlSeconds });
  }

  remove(name: string): void {
    this.#entries.delete(name);
  }

  /** Answers everything with this code, until told otherwise by undefined. */
  fail(code: 'SERVFAIL' | 'REFUSED' | undefined): void {
    this.#failure = code;
  }

  async close(): Promise<void> {
    const closed = once(this.#socket, 'close');
    this.#socket.close();
    await closed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #answer(query: Buffer): Buffer {
    const question = readQuestion(query);
    const isV4 = question.type === TYPE_A;
    this.queries.push(`${question.name} ${isV4 ? 'A' : question.type === TYPE_AAAA ? 'AAAA' : question.type}`);
    if (this.#failure !== undefined) return response(query, question, RCODE[this.#failure], []);
    const entry = this.#entries.get(question.name);
    if (entry === undefined) return response(query, question, RCODE.NXDOMAIN, []);
    const records = entry.ips
      .filter((ip) => isIPv4(ip) === isV4)
      .map((ip) => record(question.type, entry.ttlSeconds, isV4 ? v4Bytes(ip) : v6Bytes(ip)));
    return response(query, question, RCODE.NOERROR, records);
  }
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

function record(type: number, ttlSeconds: number, data: Buffer): Buffer {
  const head = Buffer.alloc(HEADER_BYTES);
  head.writeUInt16BE(NAME_OF_QUESTION, 0);
  head.writeUInt16BE(type, 2);
  head.writeUInt16BE(CLASS_IN, 4);
  head.writeUInt32BE(ttlSeconds, 6);
  head.writeUInt16BE(data.length, 10);
  return Buffer.concat([head, data]);
}

function v4Bytes(ip: string): Buffer {
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
