// The schema makes what is asked for, with what that refers to, and nothing else.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import protobuf from 'protobufjs/light.js';
import { buildOutput } from '../../../../src/base/package-root.ts';
import { SchemaParts } from '../../../../src/config/proto/schema-parts.ts';

const INTEGER = { type: 'uint32', id: 1 };
const BUNDLE: protobuf.INamespace = {
  nested: {
    a: {
      nested: {
        v1: {
          nested: {
            Outer: {
              options: { '(proxy.v2_name)': 'old.Outer' },
              fields: { inner: { type: '.a.v1.Outer.Inner', id: 1 } },
              nested: {
                Inner: { fields: { kind: { type: '.b.Kind', id: 1 }, again: { type: '.a.v1.Outer', id: 2 } } },
              },
            } as protobuf.IType,
            Other: { fields: { inner: { type: '.a.v1.Outer.Inner', id: 1 } } } as protobuf.IType,
          },
        },
      },
    },
    b: { nested: { Kind: { values: { NONE: 0, SOME: 1 } }, Alone: { fields: { count: INTEGER } } as protobuf.IType } },
  },
};

describe('the parts of the schema', () => {
  const names = ['a.v1.Outer', 'a.v1.Other', 'a.v1.Outer.Inner', 'b.Alone', 'b.Kind'];
  const made = (parts: SchemaParts): string[] => names.filter((name) => parts.root.lookup(`.${name}`) !== null);

  it('are made with what they refer to, to the last reference', () => {
    const parts = new SchemaParts(BUNDLE);
    assert.deepEqual(made(parts), []);
    const other = parts.message('a.v1.Other');
    assert.deepEqual(made(parts), ['a.v1.Outer', 'a.v1.Other', 'a.v1.Outer.Inner', 'b.Kind']);
    const inner = parts.message('a.v1.Outer.Inner');
    assert.equal(other.fields.inner!.resolvedType, inner);
    assert.ok(inner.fields.kind!.resolvedType instanceof protobuf.Enum);
    assert.equal(inner.fields.again!.resolvedType, parts.message('a.v1.Outer'));
  });

  it('are made once, also when all are wanted', () => {
    const parts = new SchemaParts(BUNDLE);
    const outer = parts.message('a.v1.Outer');
    parts.makeAll();
    assert.deepEqual(made(parts), names);
    assert.equal(parts.message('a.v1.Outer'), outer);
    assert.ok(parts.message('b.Alone').fields.count!.resolved);
  });

  it('are listed with their names without being made', () => {
    const parts = new SchemaParts(BUNDLE);
    assert.deepEqual(parts.messages, [
      { fullName: 'a.v1.Outer', v2Name: 'old.Outer' },
      { fullName: 'a.v1.Outer.Inner', v2Name: undefined },
      { fullName: 'a.v1.Other', v2Name: undefined },
      { fullName: 'b.Alone', v2Name: undefined },
    ]);
    assert.deepEqual(made(parts), []);
  });

  it('keep their full names, which readers ask for with every message', () => {
    const parts = new SchemaParts(BUNDLE);
    for (const name of ['a.v1.Outer', 'a.v1.Outer.Inner']) {
      const type = parts.message(name);
      assert.deepEqual([type.fullName, Object.hasOwn(type, 'fullName')], [`.${name}`, true]);
    }
  });

  it('leave out most messages of the real schema, for a bootstrap', () => {
    const bundle = JSON.parse(readFileSync(buildOutput('proto/bundle.json'), 'utf8')) as protobuf.INamespace;
    const parts = new SchemaParts(bundle);
    parts.message('proxy.config.bootstrap.v3.Bootstrap');
    const count = parts.messages.filter(({ fullName }) => parts.root.lookup(`.${fullName}`) !== null).length;
    assert.ok(count > 200 && count < parts.messages.length * 0.6, `${count} of ${parts.messages.length}`);
  });
});
