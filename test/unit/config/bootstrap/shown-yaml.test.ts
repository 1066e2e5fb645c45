// The text of --config-yaml where it is shown: it has no secret in it, and is a bootstrap still.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { shownConfigYaml } from '../../../../src/config/bootstrap/shown-yaml.ts';
import { mustLoad } from '../../../support/bootstrap.ts';

describe('the text of --config-yaml is shown', () => {
  it('as it is when it holds no secret', () => {
    const text = 'node: { id: one } # mine\n';
    assert.equal(shownConfigYaml(text), text);
    assert.equal(shownConfigYaml(''), '');
  });

  it('as JSON without its secrets otherwise, which still loads', () => {
    const text = 'node: { id: one, metadata: { role: front, password: planted, pins: { token: [ 1234 ] } } } # planted';
    const shown = shownConfigYaml(text);
    assert.ok(!shown.includes('planted') && !shown.includes('1234'));
    const metadata = { role: 'front', password: '[redacted]', pins: { token: ['[redacted]'] } };
    assert.deepEqual(mustLoad(shown).node.metadata, metadata);
    const bytes =
      'hds_config: { grpc_services: [ { google_grpc: { target_uri: a, stat_prefix: a, channel_credentials: { ssl_credentials: { private_key: { inline_bytes: cGxhbnRlZA== } } } } } ] }';
    assert.ok(!shownConfigYaml(bytes).includes('cGxhbnRlZA'));
  });

  it('not at all when it is no bootstrap', () => {
    assert.equal(shownConfigYaml('password: [planted'), '');
  });

  it('without what no bootstrap has when there is a secret', () => {
    assert.ok(!shownConfigYaml('{ x: planted, node: { metadata: { token: planted } } }').includes('planted'));
  });
});
