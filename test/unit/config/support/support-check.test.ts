import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import protobuf from 'protobufjs/light.js';
import { SupportCheck, type SupportTable } from '../../../../src/config/support/index.ts';
import {
  only,
  onlyElseWarned,
  rejected,
  supported,
  supportedAs,
  supportedWhole,
  warned,
} from '../../../../src/config/support/verdict.ts';

// A message type that can contain itself, with one field of every kind that the check treats differently.
const ROOT = protobuf.Root.fromJSON({
  nested: {
    test: {
      nested: {
        Color: { values: { RED: 0, GREEN: 1 } },
        Flag: { fields: { value: { id: 1, type: 'bool' } } },
        Node: {
          oneofs: { choice: { oneof: ['text', 'number'] } },
          fields: {
            text: { id: 1, type: 'string' },
            number: { id: 2, type: 'uint32' },
            plain: { id: 3, type: 'uint32' },
            big: { id: 4, type: 'uint64' },
            bytes: { id: 5, type: 'bytes' },
            color: { id: 6, type: 'Color' },
            flag: { id: 7, type: 'Flag' },
            child: { id: 8, type: 'Node' },
            list: { id: 9, rule: 'repeated', type: 'Node' },
            words: { id: 11, rule: 'repeated', type: 'string' },
          },
        },
      },
    },
  },
});
const NODE = ROOT.lookupType('test.Node').add(new protobuf.MapField('map', 10, 'string', 'Node'));

/** What a check with these rows says of the message. */
function faultsOf(table: SupportTable, fields: Record<string, unknown>): string[] {
  const found: string[] = [];
  const faults = {
    error: (at: string, message: string) => found.push(`error ${at}: ${message}`),
    warning: (at: string, message: string) => found.push(`warning ${at}: ${message}`),
  };
  const check = new SupportCheck(table, (name) => ROOT.lookupType(name));
  check.check('test.Node', NODE.fromObject(fields), '', faults);
  return found;
}

const NOTHING = 'is not supported by this build';

describe('the support check', () => {
  it('never complains of a field that is left at its default', () => {
    const table = { 'test.Node': { otherwise: rejected(), fields: {} } };
    assert.deepEqual(faultsOf(table, { plain: 0, big: 0, color: 'RED', words: [], map: {} }), []);
  });

  it('complains of every kind of field that is set', () => {
    const table = { 'test.Node': { otherwise: rejected(), fields: {} } };
    const set = {
      plain: 1,
      big: 1,
      bytes: 'AA==',
      color: 'GREEN',
      flag: {},
      child: {},
      list: [{}],
      map: { a: {} },
      words: ['x'],
    };
    assert.deepEqual(
      faultsOf(table, set).toSorted(),
      Object.keys(set)
        .map((name) => `error ${name}: ${name} ${NOTHING}`)
        .toSorted(),
    );
  });

  it('takes a oneof member for set even when its value is the default', () => {
    const table = { 'test.Node': { otherwise: supportedWhole(), fields: { number: rejected() } } };
    assert.deepEqual(faultsOf(table, { number: 0 }), [`error number: number ${NOTHING}`]);
    assert.deepEqual(faultsOf(table, { text: '' }), []);
  });

  it('names the value where only some are supported', () => {
    const fields = { color: only(['RED']), plain: onlyElseWarned([7]) };
    const table = { 'test.Node': { otherwise: supportedWhole(), fields } };
    assert.deepEqual(faultsOf(table, { color: 'GREEN', plain: 8 }), [
      `error color: color GREEN ${NOTHING}`,
      `warning plain: plain 8 ${NOTHING}; it has no effect`,
    ]);
    assert.deepEqual(faultsOf(table, { color: 'RED', plain: 7 }), []);
  });

  it('looks inside messages, lists and maps, and into messages that contain themselves', () => {
    const table = {
      'test.Node': { otherwise: supported(), fields: { words: rejected() } },
      'test.Flag': { otherwise: supported(), fields: {} },
    };
    const leaf = { words: ['x'] };
    const paths = ['child.child.words', 'list[1].words', 'map["a b"].list[0].words'];
    assert.deepEqual(
      faultsOf(table, { child: { child: leaf }, list: [{}, leaf], map: { 'a b': { list: [leaf] } } }),
      paths.map((at) => `error ${at}: words ${NOTHING}`),
    );
  });

  it('can treat one message type differently by the role it is used in', () => {
    const table = {
      'test.Node': { otherwise: supportedWhole(), fields: { child: supportedAs('inner') } },
      'test.Node (inner)': { otherwise: supportedWhole(), fields: { plain: rejected() } },
    };
    assert.deepEqual(faultsOf(table, { plain: 1, child: { plain: 1 } }), [`error child.plain: plain ${NOTHING}`]);
  });

  it('gives one warning for many places, and every error', () => {
    const table = {
      'test.Node': { otherwise: supported(), fields: { plain: warned('so what'), flag: rejected() } },
      'test.Flag': { otherwise: supported(), fields: {} },
    };
    const item = { plain: 1, flag: {} };
    assert.deepEqual(faultsOf(table, { list: [item, item, item] }), [
      ...[0, 1, 2].map((index) => `error list[${index}].flag: flag ${NOTHING}`),
      `warning list[0].plain: plain ${NOTHING}; so what (here and at 2 more)`,
    ]);
  });

  it('stops at a table that forgets a message, which only a bug can bring about', () => {
    const table = { 'test.Node': { otherwise: supported(), fields: {} } };
    assert.throws(() => faultsOf(table, {}), /no rows for test\.Flag/);
  });
});
