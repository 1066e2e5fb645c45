// DNS messages as far as A and AAAA lookups need them (RFC 1035 section 4): one question out, and from the answer those
// addresses that belong to the name asked for, directly or by way of aliases. Records about other names are passed over,
// and so is whatever answers another question: whoever can send us a packet must not choose our hosts.

import { canonicalIp } from '../../base/ip-number.ts';
import type { DnsAddress } from './dns-resolver.ts';

export type RecordType = 'A' | 'AAAA';

export interface DnsQuestion {
  /** 16 bits that an answer has to repeat; hard to guess. */
  readonly id: number;
  /** A valid name in ASCII, without a final dot. */
  readonly name: string;
  readonly type: RecordType;
  /** What an answer over UDP may have, by EDNS (RFC 6891); nothing is said of it without. */
  readonly payloadBytes?: number;
}

/** What a message amounts to, seen from the question. */
export type DnsReading =
  /** Of the name; none for a name that does not exist or has no such addresses. */
  | { readonly kind: 'addresses'; readonly addresses: readonly DnsAddress[] }
  /** The rest has to be asked for over TCP. */
  | { readonly kind: 'truncated' }
  /** No answer to this question, whoever sent it. */
  | { readonly kind: 'foreign' }
  /** The server cannot or does not want to answer, or answers nonsense. */
  | { readonly kind: 'refusal'; readonly reason: string };

const HEADER_BYTES = 12;
const TYPE_NUMBERS: Readonly<Record<RecordType, number>> = { A: 1, AAAA: 28 };
const TYPE_CNAME = 5;
const TYPE_OPT = 41;
const CLASS_IN = 1;
const RECURSION_DESIRED = 0x0100;
const RESPONSE = 0x8000;
const OPCODE_BITS = 0x7800;
const TRUNCATED = 0x0200;
const RCODE_BITS = 0x000f;
const RCODE_OK = 0;
const RCODE_NO_NAME = 3;
/** The server does not understand the question. */
export const FORMAT_ERROR = 'FORMERR';
/** Why a server does not answer. */
const REFUSALS: Readonly<Record<number, string>> = { 1: FORMAT_ERROR, 2: 'SERVFAIL', 4: 'NOTIMP', 5: 'REFUSED' };
/** The two upper bits of a length byte make it a pointer to the rest of the name. */
const POINTER_BITS = 0xc0;
const POINTER_OFFSET_BITS = 0x3fff;
const MAX_NAME_BYTES = 255;
/** More aliases on the way to an address are taken for a loop. */
const MAX_ALIASES = 16;
/** Above it a time to live means none (RFC 2181 section 8). */
const MAX_TTL_SECONDS = 0x7fff_ffff;

export function writeQuestion({ id, name, type, payloadBytes = 0 }: DnsQuestion): Buffer {
  const labels = name.split('.').map((label) => Buffer.concat([Buffer.from([label.length]), Buffer.from(label)]));
  const header = Buffer.alloc(HEADER_BYTES);
  header.writeUInt16BE(id, 0);
  header.writeUInt16BE(RECURSION_DESIRED, 2);
  header.writeUInt16BE(1, 4);
  const question = Buffer.from([0, 0, TYPE_NUMBERS[type], 0, CLASS_IN]);
  if (payloadBytes === 0) return Buffer.concat([header, ...labels, question]);
  header.writeUInt16BE(1, 10);
  return Buffer.concat([header, ...labels, question, optionRecord(payloadBytes)]);
}

/** Of the root name; the size stands in the place of the class, and there are no options. */
function optionRecord(payloadBytes: number): Buffer {
  const record = Buffer.alloc(11);
  record.writeUInt16BE(TYPE_OPT, 1);
  record.writeUInt16BE(payloadBytes, 3);
  return record;
}

/** Never throws, whatever the bytes are. */
export function readAnswer(message: Buffer, question: DnsQuestion): DnsReading {
  try {
    return read(new MessageReader(message), message, question);
  } catch (error) {
    if (error instanceof RangeError) return { kind: 'refusal', reason: 'a damaged answer' };
    throw error;
  }
}

function read(reader: MessageReader, message: Buffer, question: DnsQuestion): DnsReading {
  if (message.length < HEADER_BYTES || message.readUInt16BE(0) !== question.id) return { kind: 'foreign' };
  const flags = message.readUInt16BE(2);
  if ((flags & RESPONSE) === 0 || (flags & OPCODE_BITS) !== 0) return { kind: 'foreign' };
  const rcode = flags & RCODE_BITS;
  const questions = message.readUInt16BE(4);
  // A server that did not understand the question may leave it out.
  const repeatsNothing = questions === 0 && rcode !== RCODE_OK;
  if (!repeatsNothing && (questions !== 1 || !reader.repeats(question))) return { kind: 'foreign' };
  if ((flags & TRUNCATED) !== 0) return { kind: 'truncated' };
  if (rcode === RCODE_NO_NAME) return { kind: 'addresses', addresses: [] };
  if (rcode !== RCODE_OK) return { kind: 'refusal', reason: REFUSALS[rcode] ?? `code ${rcode}` };
  const records = Array.from({ length: message.readUInt16BE(6) }, () => reader.record());
  return addressesOf(question, records);
}

interface DnsRecord {
  readonly owner: string;
  readonly type: number;
  readonly ttlSeconds: number;
  /** The literal of an address, the target of an alias, empty for other types. */
  readonly value: string;
}

function addressesOf({ name, type }: DnsQuestion, records: readonly DnsRecord[]): DnsReading {
  const aliases = new Map(
    records.filter((record) => record.type === TYPE_CNAME).map((record) => [record.owner, record]),
  );
  let owner = name.toLowerCase();
  let ttlSeconds = Number.POSITIVE_INFINITY;
  for (let steps = 0; ; steps++) {
    const alias = aliases.get(owner);
    if (alias === undefined) break;
    if (steps === MAX_ALIASES) return { kind: 'refusal', reason: 'a loop of aliases' };
    owner = alias.value;
    ttlSeconds = Math.min(ttlSeconds, alias.ttlSeconds);
  }
  const own = records.filter((record) => record.type === TYPE_NUMBERS[type] && record.owner === owner);
  const addresses = own.map(({ value: ip, ttlSeconds: ttl }) => ({ ip, ttlSeconds: Math.min(ttl, ttlSeconds) }));
  return { kind: 'addresses', addresses };
}

/** Reads on from the end of the header. @throws RangeError at the end of the message, and where it contradicts itself. */
class MessageReader {
  readonly #message: Buffer;
  #at = HEADER_BYTES;

  constructor(message: Buffer) {
    this.#message = message;
  }

  /** Reads the question of the message. */
  repeats({ name, type }: DnsQuestion): boolean {
    const asked = this.#name();
    const [askedType, askedClass] = [this.#u16(), this.#u16()];
    return asked === name.toLowerCase() && askedType === TYPE_NUMBERS[type] && askedClass === CLASS_IN;
  }

  record(): DnsRecord {
    const owner = this.#name();
    const type = this.#u16();
    const isInternet = this.#u16() === CLASS_IN;
    const ttl = this.#u16() * 0x1_0000 + this.#u16();
    const length = this.#u16();
    const end = this.#at + length;
    if (end > this.#message.length) throw new RangeError('a record ends beyond the message');
    const value = isInternet ? this.#value(type, length) : '';
    this.#at = end;
    return { owner, type: isInternet ? type : 0, ttlSeconds: ttl > MAX_TTL_SECONDS ? 0 : ttl, value };
  }

  #value(type: number, length: number): string {
    if (type === TYPE_CNAME) return this.#name();
    if (type !== TYPE_NUMBERS.A && type !== TYPE_NUMBERS.AAAA) return '';
    const bytes = this.#message.subarray(this.#at, this.#at + length);
    if (bytes.length !== (type === TYPE_NUMBERS.A ? 4 : 16)) throw new RangeError('an address of another length');
    return type === TYPE_NUMBERS.A ? bytes.join('.') : canonicalIp(hexGroups(bytes));
  }

  /** In lower case, without a final dot; pointers lead backwards only, so that they come to an end. */
  #name(): string {
    const labels: string[] = [];
    let at = this.#at;
    let before = at;
    let total = 0;
    let isElsewhere = false;
    for (;;) {
      const length = this.#message.readUInt8(at);
      if ((length & POINTER_BITS) === POINTER_BITS) {
        const target = this.#message.readUInt16BE(at) & POINTER_OFFSET_BITS;
        if (!isElsewhere) this.#at = at + 2;
        isElsewhere = true;
        if (target >= before) throw new RangeError('a pointer that does not lead backwards');
        before = target;
        at = target;
        continue;
      }
      if ((length & POINTER_BITS) !== 0) throw new RangeError('a label of an unknown kind');
      total += length + 1;
      if (total > MAX_NAME_BYTES) throw new RangeError('a name too long');
      if (length === 0) break;
      // Where the message ends within the label, the next one cannot be read.
      labels.push(this.#message.toString('latin1', at + 1, at + 1 + length));
      at += length + 1;
    }
    if (!isElsewhere) this.#at = at + 1;
    return labels.join('.').toLowerCase();
  }

  #u16(): number {
    const value = this.#message.readUInt16BE(this.#at);
    this.#at += 2;
    return value;
  }
}

function hexGroups(bytes: Buffer): string {
  return Array.from({ length: 8 }, (_, group) => bytes.readUInt16BE(group * 2).toString(16)).join(':');
}
