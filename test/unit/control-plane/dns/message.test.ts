// What is read out of the bytes of an answer, and what is not.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  type DnsQuestion,
  type DnsReading,
  readAnswer,
  writeQuestion,
} from '../../../../src/control-plane/dns/message.ts';
import { answerWith, encodeName, record, v4Bytes } from '../../../support/dns-server.ts';

const TYPE_A = 1;
const TYPE_CNAME = 5;
const TYPE_TXT = 16;
const TYPE_AAAA = 28;
/** The name of the question. */
const OWN_NAME = Buffer.from([0xc0, 0x0c]);
/** Where the records begin, behind the question. */
const RECORDS_AT = 26;
const TRUNCATED = 0x0200;
const DAMAGED: DnsReading = { kind: 'refusal', reason: 'a damaged answer' };
const FOREIGN: DnsReading = { kind: 'foreign' };

const question: DnsQuestion = { id: 4711, name: 'web.test', type: 'A' };
const addressRecord = (ip: string, owner: Buffer = OWN_NAME, ttlSeconds = 1): Buffer =>
  record(owner, TYPE_A, ttlSeconds, v4Bytes(ip));
const aliasRecord = (owner: Buffer, target: Buffer, ttlSeconds = 1): Buffer =>
  record(owner, TYPE_CNAME, ttlSeconds, target);

function answer(...records: readonly Buffer[]): Buffer {
  return answerWith(writeQuestion(question), records);
}

function edited(message: Buffer, edit: (message: Buffer) => void): Buffer {
  edit(message);
  return message;
}

function ipsOf(reading: DnsReading): readonly string[] {
  assert.equal(reading.kind, 'addresses');
  return reading.kind === 'addresses' ? reading.addresses.map(({ ip }) => ip) : [];
}

const withFlags = (flags: number, message: Buffer): Buffer => edited(message, (bytes) => bytes.writeUInt16BE(flags, 2));
const aboutAnotherName = (message: Buffer): Buffer => edited(message, (bytes) => bytes.writeUInt8(0x78, 13));
const read = (message: Buffer): DnsReading => readAnswer(message, question);

describe('reading a DNS message', () => {
  it('never throws and never goes on for ever, whatever the bytes are', () => {
    const answer = answerWith(writeQuestion(question), [
      record(OWN_NAME, TYPE_CNAME, 1, encodeName('a.test')),
      record(encodeName('a.test'), TYPE_A, 1, v4Bytes('10.0.0.1')),
    ]);
    assert.equal(readAnswer(answer, question).kind, 'addresses');
    for (let at = 0; at < answer.length; at++) {
      readAnswer(answer.subarray(0, at), question);
      for (const value of [0, 1, 0x3f, 0x40, 0x7f, 0x80, 0xc0, 0xc1, 0xff]) {
        const damaged = Buffer.from(answer);
        damaged[at] = value;
        readAnswer(damaged, question);
      }
    }
  });

  it('takes a time to live with the highest bit for none', () => {
    const answer = answerWith(writeQuestion(question), [record(OWN_NAME, TYPE_A, 0x8000_0000, v4Bytes('10.0.0.1'))]);
    assert.deepEqual(readAnswer(answer, question), {
      kind: 'addresses',
      addresses: [{ ip: '10.0.0.1', ttlSeconds: 0 }],
    });
  });

  it('takes the longest time to live there is as it is', () => {
    assert.deepEqual(read(answer(addressRecord('10.0.0.1', OWN_NAME, 0x7fff_ffff))), {
      kind: 'addresses',
      addresses: [{ ip: '10.0.0.1', ttlSeconds: 0x7fff_ffff }],
    });
  });

  it('names the address of every record, of the family that was asked for', () => {
    const v6 = record(OWN_NAME, TYPE_AAAA, 1, Buffer.from('20010db8000000000000000000010001', 'hex'));
    const records = [addressRecord('10.0.0.1'), v6, addressRecord('10.0.0.2')];
    assert.deepEqual(ipsOf(read(answer(...records))), ['10.0.0.1', '10.0.0.2']);
    const other = { ...question, type: 'AAAA' } as const;
    assert.deepEqual(ipsOf(readAnswer(answerWith(writeQuestion(other), records), other)), ['2001:db8::1:1']);
  });

  it('compares names without case', () => {
    const upper = edited(answer(addressRecord('10.0.0.1', encodeName('WEB.Test'))), (bytes) => {
      bytes[13] = 'W'.charCodeAt(0);
    });
    assert.deepEqual(ipsOf(read(upper)), ['10.0.0.1']);
    const asked = { ...question, name: 'Web.TEST' };
    assert.deepEqual(ipsOf(readAnswer(answer(addressRecord('10.0.0.1')), asked)), ['10.0.0.1']);
  });

  it('passes over records of other types and classes, aliases among them', () => {
    const ofChaos = (bytes: Buffer, owner: Buffer): Buffer =>
      edited(bytes, (chaos) => chaos.writeUInt16BE(3, owner.length + 2));
    const reading = read(
      answer(
        record(OWN_NAME, TYPE_TXT, 1, Buffer.from('\x05hello')),
        ofChaos(addressRecord('10.6.6.6'), OWN_NAME),
        ofChaos(aliasRecord(OWN_NAME, encodeName('evil.test')), OWN_NAME),
        // What would be no address of the class that matters.
        ofChaos(record(OWN_NAME, TYPE_A, 1, Buffer.alloc(1)), OWN_NAME),
        addressRecord('10.0.0.1'),
        addressRecord('10.6.6.7', encodeName('evil.test')),
      ),
    );
    assert.deepEqual(ipsOf(reading), ['10.0.0.1']);
  });

  it('follows 16 aliases and takes more for a loop', () => {
    const chain = (length: number): Buffer[] => {
      const names = [question.name, ...Array.from({ length }, (_, index) => `a${index}.test`)].map(encodeName);
      const aliases = names.slice(1).map((name, index) => aliasRecord(names[index]!, name));
      return [...aliases, addressRecord('10.0.0.1', names.at(-1))];
    };
    assert.deepEqual(ipsOf(read(answer(...chain(16)))), ['10.0.0.1']);
    assert.deepEqual(read(answer(...chain(17))), { kind: 'refusal', reason: 'a loop of aliases' });
  });

  it('gives an address no longer to live than the aliases on the way to it, nor than itself', () => {
    const ttlOf = (aliasTtl: number, ownTtl: number): number | undefined => {
      const alias = aliasRecord(OWN_NAME, encodeName('a.test'), aliasTtl);
      const reading = read(answer(alias, addressRecord('10.0.0.1', encodeName('a.test'), ownTtl)));
      return reading.kind === 'addresses' ? reading.addresses[0]?.ttlSeconds : undefined;
    };
    assert.deepEqual([ttlOf(100_000, 200_000), ttlOf(200_000, 70_000)], [100_000, 70_000]);
  });

  const foreign: readonly { readonly name: string; readonly message: () => Buffer }[] = [
    { name: 'under another id', message: () => edited(answer(), (bytes) => bytes.writeUInt16BE(4712, 0)) },
    { name: 'shorter than a header', message: () => answer().subarray(0, 11) },
    { name: 'that is no answer', message: () => withFlags(0x0100, answer()) },
    { name: 'to another kind of operation', message: () => withFlags(0x8800 | 0x0180, answer()) },
    { name: 'to two questions', message: () => edited(answer(), (bytes) => bytes.writeUInt16BE(2, 4)) },
    { name: 'to no question', message: () => edited(answer(), (bytes) => bytes.writeUInt16BE(0, 4)) },
    { name: 'about another name', message: () => aboutAnotherName(answer()) },
    { name: 'that refuses another name', message: () => aboutAnotherName(withFlags(0x8182, answer())) },
    { name: 'about another type', message: () => edited(answer(), (bytes) => bytes.writeUInt16BE(TYPE_TXT, 22)) },
    { name: 'about another class', message: () => edited(answer(), (bytes) => bytes.writeUInt16BE(3, 24)) },
  ];
  for (const { name, message } of foreign) {
    it(`takes a message ${name} for none of its own`, () => {
      assert.deepEqual(read(message()), FOREIGN);
    });
  }

  it('tells that an answer is cut off, whatever of it is there', () => {
    assert.deepEqual(read(withFlags(0x8180 | TRUNCATED, answer(addressRecord('10.0.0.1')))), { kind: 'truncated' });
  });

  const refusals = [
    { rcode: 1, reason: 'FORMERR' },
    { rcode: 2, reason: 'SERVFAIL' },
    { rcode: 4, reason: 'NOTIMP' },
    { rcode: 5, reason: 'REFUSED' },
    { rcode: 9, reason: 'code 9' },
  ];
  for (const { rcode, reason } of refusals) {
    it(`takes code ${rcode} for a refusal, ${reason}, with its question or without`, () => {
      assert.deepEqual(read(withFlags(0x8180 | rcode, answer())), { kind: 'refusal', reason });
      const without = edited(withFlags(0x8180 | rcode, answer()).subarray(0, 12), (bytes) => bytes.writeUInt16BE(0, 4));
      assert.deepEqual(read(without), { kind: 'refusal', reason });
    });
  }

  it('takes a name that does not exist for one without addresses', () => {
    assert.deepEqual(read(withFlags(0x8183, answer(addressRecord('10.0.0.1')))), { kind: 'addresses', addresses: [] });
  });

  it('reads names over pointers to pointers', () => {
    // The target of the alias is a label and a pointer to the owner of the record, which points at the question.
    const target = Buffer.concat([Buffer.from('\x01a'), Buffer.from([0xc0, RECORDS_AT])]);
    const alias = aliasRecord(OWN_NAME, target);
    const own = addressRecord('10.0.0.1', encodeName('a.web.test'));
    assert.deepEqual(ipsOf(read(answer(alias, own))), ['10.0.0.1']);
    const second = addressRecord('10.0.0.2', Buffer.from([0xc0, RECORDS_AT]));
    assert.deepEqual(ipsOf(read(answer(addressRecord('10.0.0.1'), second))), ['10.0.0.1', '10.0.0.2']);
  });

  it('reads names of 255 bytes and labels of 63, and nothing longer', () => {
    const label = 'x'.repeat(63);
    const longest = `${label}.${label}.${label}.${'y'.repeat(61)}`;
    const alias = aliasRecord(OWN_NAME, encodeName(longest));
    assert.deepEqual(ipsOf(read(answer(alias, addressRecord('10.0.0.1', encodeName(longest))))), ['10.0.0.1']);
    assert.deepEqual(read(answer(addressRecord('10.0.0.1', encodeName(`${longest}y`)))), DAMAGED);
  });

  const damage: readonly { readonly name: string; readonly records: readonly Buffer[] }[] = [
    {
      name: 'a name that points forward',
      records: [addressRecord('10.0.0.1', Buffer.from([0xc0, RECORDS_AT + 20])), addressRecord('10.0.0.2')],
    },
    { name: 'a name that points at itself', records: [addressRecord('10.0.0.1', Buffer.from([0xc0, RECORDS_AT]))] },
    {
      name: 'names that point at each other',
      records: [aliasRecord(OWN_NAME, Buffer.from([0xc0, RECORDS_AT + 14, 0xc0, RECORDS_AT + 12]))],
    },
    {
      name: 'a label of a kind that is not in use',
      records: [addressRecord('10.0.0.1', Buffer.from(`\x41${'x'.repeat(0x41)}\0`))],
    },
    { name: 'an address of IPv4 that is too long', records: [record(OWN_NAME, TYPE_A, 1, Buffer.alloc(16))] },
    { name: 'an address of IPv6 that is too short', records: [record(OWN_NAME, TYPE_AAAA, 1, Buffer.alloc(4))] },
  ];
  for (const { name, records } of damage) {
    it(`refuses an answer with ${name}`, () => {
      assert.deepEqual(read(answer(...records)), DAMAGED);
    });
  }

  it('refuses an answer with fewer records than it announces, or with one that ends beyond it', () => {
    const one = (): Buffer => answer(addressRecord('10.0.0.1'));
    assert.deepEqual(read(edited(one(), (bytes) => bytes.writeUInt16BE(2, 6))), DAMAGED);
    assert.deepEqual(read(answer(record(OWN_NAME, TYPE_TXT, 1, Buffer.alloc(9))).subarray(0, -1)), DAMAGED);
  });
});
