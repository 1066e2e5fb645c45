// What is other in a response than in the one before, held against a model that compares what is said.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { rawFingerprintOf } from '../../../../../src/config/discovery/fingerprint.ts';
import { discoveryService, type RawResource, type ResourceType } from '../../../../../src/config/index.ts';
import { NewsOfResponses } from '../../../../../src/control-plane/subscription/management-server/news-of-responses.ts';

const NAMES = ['a', 'b', 'c', 'd'];
const TYPE_URL = discoveryService('proxy.config.endpoint.v3.ClusterLoadAssignment').typeUrl.v3;
const TYPE = { scope: 'scope' } as unknown as ResourceType<unknown>;

/** @param text what it says. */
function resource(name: string, text: string, fields: Partial<RawResource> = {}): RawResource {
  return { name, version: '', typeUrl: TYPE_URL, bytes: Buffer.from(text), ttlMs: undefined, ...fields };
}

describe('the news of responses', () => {
  it('are what is said otherwise than in the response before, or was not there', () => {
    const said = fc.dictionary(fc.constantFrom(...NAMES), fc.constantFrom('x', 'y'), { noNullPrototype: true });
    const round = fc.record({ said, forgotten: fc.constantFrom('', '', ...NAMES) });
    fc.assert(
      fc.property(fc.array(round, { maxLength: 12, size: 'max' }), (rounds) => {
        const news = new NewsOfResponses();
        let before = new Map<string, string>();
        for (const { said: texts, forgotten } of rounds) {
          news.forget(forgotten);
          before.delete(forgotten);
          const resources = Object.entries(texts).map(([name, text]) => resource(name, text));
          for (const each of resources) assert.equal(news.note(each), before.get(each.name) !== texts[each.name]);
          news.keepOnly(resources);
          before = new Map(Object.entries(texts));
        }
      }),
    );
  });

  it('are not what is as it was, of which the digest is as known as it was', () => {
    const news = new NewsOfResponses();
    const first = resource('a', 'x');
    news.note(first);
    const fingerprint = rawFingerprintOf(TYPE, first);
    // Whoever computes it again gets another.
    first.digest = 'carried';
    const again = resource('a', 'x', { ttlMs: 5 });
    assert.equal(news.note(again), false);
    assert.equal(rawFingerprintOf(TYPE, again), `${TYPE_URL} scope carried`);
    const other = resource('a', 'y');
    assert.equal(news.note(other), true);
    assert.equal(other.digest, undefined);
    const back = resource('a', 'x');
    assert.equal(news.note(back), true);
    assert.equal(rawFingerprintOf(TYPE, back), fingerprint);
  });

  it('are what says the same in another form, by other names, or as another version', () => {
    const others: readonly Partial<RawResource>[] = [
      { typeUrl: 'type.googleapis.com/other' },
      { otherName: 'b' },
      { version: '2' },
      { aliases: ['b'] },
      { bytes: undefined },
    ];
    for (const fields of others) {
      const news = new NewsOfResponses();
      news.note(resource('a', 'x'));
      assert.equal(news.note(resource('a', 'x', fields)), true, JSON.stringify(fields));
    }
  });

  it('are all that comes as text, and what comes behind it', () => {
    const news = new NewsOfResponses();
    const opened = { content: undefined, at: '', faults: [] } as unknown as NonNullable<RawResource['opened']>;
    news.note(resource('a', 'x'));
    for (const fields of [{ opened }, { opened }, {}]) assert.equal(news.note(resource('a', 'x', fields)), true);
    assert.equal(news.note(resource('a', 'x')), false);
  });
});
