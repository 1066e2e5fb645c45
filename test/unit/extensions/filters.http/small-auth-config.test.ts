// Configurations of api_key_auth and ip_tagging: what they become, and what is refused by name.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { describe, it } from 'node:test';
import type { ApiKeyAuthSettings } from '../../../../src/extensions/filters.http/api_key_auth/settings.ts';
import type { IpTaggingSettings } from '../../../../src/extensions/filters.http/ip_tagging/settings.ts';
import { faultTexts, type JsonObject, load } from '../../../support/bootstrap.ts';
import { filterFaults, filterSettings, withHttpFilter } from '../../../support/filter-config.ts';

const KEYS = 'envoy.extensions.filters.http.api_key_auth.v3.ApiKeyAuth';
const PER_ROUTE = 'type.googleapis.com/envoy.extensions.filters.http.api_key_auth.v3.ApiKeyAuthPerRoute';
const TAGS = 'envoy.extensions.filters.http.ip_tagging.v3.IPTagging';

describe('what api_key_auth is told', () => {
  const ANN = { key: 'tulip', client: 'ann' };
  const errors = (fields: JsonObject): string[] => filterFaults('api_key_auth', KEYS, fields);

  it('has digests of keys, and what is not said is for others to say', () => {
    const settings = filterSettings<ApiKeyAuthSettings>('keys', KEYS, {
      credentials: [ANN, { key: 'rose', client: 'ann' }],
      key_sources: [{ header: 'X-Key', query: 'ignored' }, { query: 'key' }, { cookie: 'key' }],
    });
    const digest = (key: string): string => createHash('sha256').update(key).digest('base64');
    assert.deepEqual(
      [...settings.clients!],
      [digest('tulip'), digest('rose')].map((each) => [each, 'ann']),
    );
    assert.deepEqual(settings.sources, [
      { kind: 'header', name: 'x-key' },
      { kind: 'query', name: 'key' },
      { kind: 'cookie', name: 'key' },
    ]);
    assert.equal(settings.forwarding, null);
    assert.ok(!JSON.stringify([...settings.clients!]).includes('tulip'));
    const empty = filterSettings<ApiKeyAuthSettings>('keys', KEYS, {});
    assert.deepEqual([empty.clients, empty.sources], [null, null]);
  });

  it('is refused by the name of the field, without a key', () => {
    assert.deepEqual(errors({ credentials: [ANN, { ...ANN, client: 'eve' }] }), [
      'credentials[1].key: is that of another entry, too',
    ]);
    assert.match(errors({ credentials: [{ key: '', client: 'a' }] })[0]!, /^credentials\[0\]\.key: /);
    assert.match(errors({ credentials: [{ key: 'a', client: '' }] })[0]!, /^credentials\[0\]\.client: /);
    assert.deepEqual(errors({ credentials: [{ key: 'a', client: 'b\n' }] }), [
      'credentials[0].client: has control characters',
    ]);
    assert.deepEqual(errors({ key_sources: [{}] }), ['key_sources[0]: needs header, query or cookie']);
    assert.match(errors({ key_sources: [{ header: 'a\n' }] })[0]!, /^key_sources\[0\]\.header: /);
    assert.deepEqual(errors({ forwarding: { header: 'Host' } }), ['forwarding.header: "Host" cannot be set here']);
    assert.match(errors({ forwarding: { header: 'a b' } })[0]!, /^forwarding\.header: /);
    const name = 'envoy.filters.http.api_key_auth';
    const said = { [name]: { '@type': PER_ROUTE, allowed_clients: [''] } };
    const [fault] = faultTexts(load(withHttpFilter(name, KEYS, {}, said)));
    assert.match(fault!, /\]\.allowed_clients\[0\]: /);
  });
});

describe('what ip_tagging is told', () => {
  const errors = (fields: JsonObject): string[] => filterFaults('ip_tagging', TAGS, fields);
  const tag = (ip_tag_name: string, address_prefix = '10.0.0.0', prefix_len = 8): JsonObject => ({
    ip_tag_name,
    ip_list: [{ address_prefix, prefix_len }],
  });

  it('is the same in both generations', () => {
    const fields = { request_type: 'EXTERNAL', ip_tags: [tag('office')] };
    const of = (type: string): IpTaggingSettings => filterSettings('envoy.ip_tagging', type, fields);
    const settings = of(TAGS);
    assert.deepEqual(of('envoy.config.filter.http.ip_tagging.v2.IPTagging'), settings);
    assert.deepEqual([settings.requests, settings.header, settings.keepsOthers], ['external', null, false]);
    assert.equal(settings.tags[0]!.counter, 'ip_tagging.office.hit');
  });

  it('is refused by the name of the field', () => {
    assert.match(errors({})[0]!, /^ip_tags: /);
    assert.deepEqual(errors({ ip_tags: [tag('')] }), ['ip_tags[0].ip_tag_name: "" cannot be told in a header']);
    assert.deepEqual(errors({ ip_tags: [tag('a,b')] }), ['ip_tags[0].ip_tag_name: "a,b" cannot be told in a header']);
    assert.match(errors({ ip_tags: [tag('a', 'x')] })[0]!, /^ip_tags\[0\]\.ip_list\[0\]\.address_prefix: /);
    assert.match(errors({ ip_tags: [tag('a', '10.0.0.0', 33)] })[0]!, /^ip_tags\[0\]\.ip_list\[0\]\.prefix_len: /);
    const header = (name: string): JsonObject => ({ ip_tags: [tag('a')], ip_tag_header: { header: name } });
    assert.match(errors(header(''))[0]!, /^ip_tag_header\.header: /);
    assert.deepEqual(errors(header('Host')), ['ip_tag_header.header: "Host" cannot be set here']);
  });
});
