import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { StrictChecks } from '../../../../src/data-plane/router/strict-checks.ts';
import { requestHead } from '../../../support/heads.ts';

const NUMBERS = [
  'x-proxy-upstream-rq-timeout-ms',
  'x-proxy-upstream-rq-per-try-timeout-ms',
  'x-proxy-max-retries',
] as const;

function refusal(names: readonly string[], ...lines: readonly string[]): string | null {
  return new StrictChecks(names).firstInvalid(requestHead('GET /', ...lines))?.body ?? null;
}

describe('a control header that must make sense', () => {
  for (const name of NUMBERS) {
    for (const [value, isValid] of [
      ['0', true],
      ['123456789', true],
      ['1234567890', false],
      ['', false],
      ['x5', false],
      ['5x', false],
      ['-5', false],
      ['5.0', false],
    ] as const) {
      test(`${name}: ${value} is ${isValid ? 'taken' : 'refused'}`, () => {
        const body = refusal([name], `${name}: ${value}`);
        assert.equal(body, isValid ? null : `invalid header '${name}' with value '${value}'`);
      });
    }
  }

  for (const [name, good, bad] of [
    ['x-proxy-retry-on', '5xx, reset', '5xx,cancelled'],
    ['x-proxy-retry-grpc-on', 'cancelled ,unavailable', 'cancelled,5xx'],
  ] as const) {
    test(`${name} may name conditions of its kind alone`, () => {
      assert.equal(refusal([name], `${name}: ${good}`), null);
      assert.equal(refusal([name], `${name}: `), null);
      assert.equal(refusal([name], `${name}: ${bad}`), `invalid header '${name}' with value '${bad}'`);
    });
  }

  test('is one that the router is told to mind', () => {
    assert.equal(refusal([], 'x-proxy-max-retries: x'), null);
    assert.equal(refusal(['x-proxy-retry-on'], 'x-proxy-max-retries: x'), null);
    assert.equal(refusal(['x-proxy-unknown', 'toString'], 'x-proxy-unknown: x', 'tostring: x'), null);
    // Known, and nothing that is checked.
    assert.equal(refusal(['x-proxy-original-path'], 'x-proxy-original-path: x'), null);
  });

  test('need not be there', () => {
    assert.equal(refusal(NUMBERS), null);
  });

  test('is named as the client has written it, in small letters', () => {
    const names = ['x-proxy-retry-on', 'x-proxy-max-retries'];
    assert.equal(
      refusal(names, 'X-Envoy-Max-Retries: no', 'x-proxy-retry-on: reset'),
      "invalid header 'x-envoy-max-retries' with value 'no'",
    );
  });

  test('is refused in the order in which they are checked', () => {
    const names = ['x-proxy-retry-on', 'x-proxy-max-retries'];
    assert.match(refusal(names, 'x-proxy-max-retries: a', 'x-proxy-retry-on: b')!, /'x-proxy-retry-on'/);
  });
});
