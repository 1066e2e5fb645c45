import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { Trailers } from '../../../../src/data-plane/http/trailers.ts';
import type { FactsSource } from '../../../../src/data-plane/index.ts';
import { compileQueryMutations } from '../../../../src/extensions/filters.http/header_mutation/query.ts';
import type { HeaderMutationSettings } from '../../../../src/extensions/filters.http/header_mutation/settings.ts';
import { TrailerFields } from '../../../../src/extensions/filters.http/header_mutation/trailer-fields.ts';
import type { JsonObject } from '../../../support/bootstrap.ts';
import { filterFaults, filterSettings } from '../../../support/filter-config.ts';

const TYPE = 'envoy.extensions.filters.http.header_mutation.v3.HeaderMutation';
/** Nothing is asked by literals. */
const NOTHING = {} as FactsSource;

const faults = (mutations: JsonObject): string[] => filterFaults('header_mutation', TYPE, { mutations });

describe('a configuration of the header_mutation filter', () => {
  it('may write parameters in the older form', () => {
    const queryOf = (append: JsonObject): unknown => {
      const mutations = { query_parameter_mutations: [{ append }] };
      return filterSettings<HeaderMutationSettings>('envoy.filters.http.header_mutation', TYPE, { mutations }).own
        .query;
    };
    const older = { entry: { key: 'a', value: Buffer.from('ü').toString('base64') } };
    assert.deepEqual(queryOf(older), [{ kind: 'set', name: 'a', value: ['Ã¼'], action: 'append' }]);
    assert.deepEqual(queryOf(older), queryOf({ record: { key: 'a', value: 'ü' } }));
  });

  it('is refused by the name of the field', () => {
    const of = (name: string, mutation: JsonObject): string[] => faults({ [name]: [mutation] });
    const header = (key: string, value = 'x'): JsonObject => ({ append: { header: { key, value } } });
    assert.match(of('request_mutations', header('host'))[0]!, /^mutations\.request_mutations\[0\].*"host"/);
    assert.match(of('request_mutations', header(':path'))[0]!, /request_mutations\[0\].*":path"/);
    assert.match(
      of('response_mutations', { remove: 'content-length' })[0]!,
      /response_mutations\[0\]\.remove.*"content-length"/,
    );
    assert.match(
      of('response_mutations', header('x', '%NOPE%'))[0]!,
      /response_mutations\[0\]\.append\.header\.value.*NOPE/,
    );
    assert.match(of('response_mutations', {})[0]!, /response_mutations\[0\].*remove/);
    for (const name of ['request_trailers_mutations', 'response_trailers_mutations']) {
      assert.deepEqual(of(name, header('Set-Cookie')), [`mutations.${name}: "set-cookie" cannot be a trailer`]);
    }
    const at = 'mutations.query_parameter_mutations[0]';
    const query = (mutation: JsonObject): string[] => of('query_parameter_mutations', mutation);
    assert.deepEqual(query({}), [`${at}: needs append or remove`]);
    const record = { key: 'a', value: 'b' };
    assert.deepEqual(query({ append: { record }, remove: 'b' }), [
      `${at}.remove: cannot be given together with append`,
    ]);
    assert.deepEqual(query({ append: {} }), [`${at}.append: needs record`]);
    assert.deepEqual(query({ append: { record: { key: 'a', value: 1 } } }), [`${at}.append.record.value: is not text`]);
    assert.match(query({ append: { record: { key: 'a', value: '%NOPE%' } } })[0]!, /append\.record\.value: .*NOPE/);
    assert.match(query({ append: { record: { key: '', value: 'a' } } })[0]!, /append\.record\.key: /);
  });
});

describe('changes of a query', () => {
  it('leave what they do not name as it was written', () => {
    const word = fc.string({ unit: fc.constantFrom('a', 'b', '%41', '%', '+', '=', '/'), maxLength: 6 });
    const isNamed = (text: string): boolean => text.split('=', 1)[0]!.replaceAll('%41', 'A') === 'x';
    fc.assert(
      fc.property(fc.array(word), (words) => {
        const texts = words.filter((text) => text !== '' && !isNamed(text));
        const edit = compileQueryMutations([
          { kind: 'remove', name: 'x' },
          { kind: 'set', name: 'y y', value: ['1&=#'], action: 'overwrite' },
        ])!;
        const mixed = ['x=1', ...texts, 'x', '%78=2', 'y%20y=0'].join('&');
        assert.equal(edit(`/p?${mixed}`, NOTHING), `/p?${[...texts, 'y%20y=1%26%3D%23'].join('&')}`);
      }),
    );
  });

  it('take the mark away with the last parameter', () => {
    const edit = compileQueryMutations([{ kind: 'remove', name: 'x' }])!;
    assert.deepEqual([edit('/p?x=1', NOTHING), edit('/p', NOTHING), edit('/p?', NOTHING)], ['/p', '/p', '/p']);
    assert.equal(compileQueryMutations([]), null);
  });
});

describe('trailers', () => {
  it('get no value that would break their lines', () => {
    const trailers = Trailers.parse('a: 1\r\n');
    const fields = new TrailerFields(trailers);
    for (const value of ['x\r\ny: 2', 'x\n', 'x\0', '\u2713']) fields.append('b', value);
    fields.append('c', '\xfc 3');
    assert.deepEqual(trailers.entries(), [
      ['a', '1'],
      ['c', '\xfc 3'],
    ]);
  });
});
