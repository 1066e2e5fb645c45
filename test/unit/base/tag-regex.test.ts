import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { compileTagRegex } from '../../../src/base/tag-regex.ts';

describe('an expression of a stat tag', () => {
  it('is one of RE2', () => {
    assert.equal(compileTagRegex('^(a+)+$').regex?.exec(`${'a'.repeat(5000)}b`), null);
    assert.equal(compileTagRegex('^cluster\\.((.+?)\\.)').regex?.exec('cluster.web.x')?.[2], 'web');
  });

  it('may look around, beside classes that have names', () => {
    const listener = compileTagRegex('^listener(?=\\.).*?\\.http\\.(((?:[_.[:digit:]]*|[_\\[\\]aAbB[:alpha:]]*))\\.)')
      .regex!;
    assert.equal(listener.exec('listener.10.0.0.1_80.http.ab[A].downstream_rq_total')?.[2], 'ab[A]');
    assert.equal(listener.exec('listeners.10.0.0.1_80.http.ab.downstream_rq_total'), null);
    assert.equal(compileTagRegex('(?<!up)(stream)').regex?.exec('upstream'), null);
    assert.equal(compileTagRegex('(?<=down)(stream)').regex?.exec('downstream')?.[1], 'stream');
  });

  it('is neither one of the one kind nor of the other', () => {
    assert.match(compileTagRegex('(').error!, /^missing \): \($/);
    assert.match(compileTagRegex('(?=a').error!, /Unterminated group/);
  });
});
