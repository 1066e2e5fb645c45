import assert from 'node:assert/strict';
import path from 'node:path';
import { describe, it } from 'node:test';
import { PACKAGE_ROOT } from '../../../../src/base/package-root.ts';
import { protoSchema } from '../../../../src/config/proto/root.ts';
import { coverageFrom, type MessageCoverage, supportWith } from '../../../../src/config/support/index.ts';
import { EXTENSIONS } from '../../../../src/extensions/control-registry.ts';
import { runProgram } from '../../../support/child-process.ts';

const schema = protoSchema();
const SUPPORT = supportWith(EXTENSIONS);
const OF_CONNECTIONS = /^proxy\.(?:config\.(?:listener|rbac)|extensions\.filters\.(?:listener|network|udp))\./;
const BOOTSTRAP = 'proxy.config.bootstrap.v3.Bootstrap';
/** Stands in no bootstrap in this role: it comes by discovery. */
const DISCOVERED = 'proxy.config.core.v3.TypedExtensionConfig';

function coverage(): readonly MessageCoverage[] {
  return coverageFrom(schema.messageType(BOOTSTRAP), SUPPORT, (name) => schema.messageType(name));
}

describe('the support table', () => {
  it('has a verdict on every field that a bootstrap can reach', () => {
    const reached = coverage();
    assert.ok(reached.length > 30, `only ${reached.length} messages reached`);
    for (const { key, fields } of reached) for (const { verdict } of fields) assert.ok(verdict, key);
  });

  it('has no rows for messages that nothing leads to', () => {
    const reached = new Set([DISCOVERED, ...coverage().map(({ key }) => key)]);
    assert.deepEqual(
      Object.keys(SUPPORT).filter((key) => !reached.has(key)),
      [],
    );
  });

  it('says of whatever it does not take of listeners and network filters what to do instead', () => {
    const silent = coverage().flatMap(({ key, fields }) => {
      if (!OF_CONNECTIONS.test(key)) return [];
      const without = fields.filter(
        ({ verdict: { kind, note } }) => kind !== 'supported' && kind !== 'extension' && note === '',
      );
      return without.map(({ field }) => `${key}.${field.name}`);
    });
    assert.deepEqual(silent, []);
  });

  it('has no rows for fields that the schema does not have', () => {
    const unknown: string[] = [];
    for (const { key, type } of coverage()) {
      for (const name of Object.keys(SUPPORT[key]!.fields))
        if (type.fields[name] === undefined) unknown.push(`${key}.${name}`);
    }
    assert.deepEqual(unknown, []);
  });

  it('limits fields only to enum values that exist', () => {
    for (const { key, fields } of coverage()) {
      for (const { field, verdict } of fields) {
        if (verdict.kind !== 'limited' || field.resolvedType === null || !('valuesById' in field.resolvedType))
          continue;
        const names = new Set(Object.values(field.resolvedType.valuesById));
        for (const value of verdict.accepts) assert.ok(names.has(String(value)), `${key}.${field.name} ${value}`);
      }
    }
  });

  it('is what docs/config-support.md says', async () => {
    const script = path.join(PACKAGE_ROOT, 'scripts/config-support.ts');
    const check = await runProgram(process.execPath, [script, '--check']);
    assert.equal(check.code, 0, check.stderr);
  });
});
