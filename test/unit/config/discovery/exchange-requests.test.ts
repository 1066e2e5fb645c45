// What management servers are asked, in its binary form.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { encodeStateRequest, NO_NAMES, requestNames, stateRequestText } from '../../../../src/config/exchange.ts';
import { encodeMessage, protoSchema } from '../../../../src/config/index.ts';
import { decodeMessage } from '../../../../src/config/proto/wire.ts';

const REQUEST = 'proxy.service.discovery.v3.DiscoveryRequest';
const NODE = { message: { id: 'me', cluster: 'us' } };

describe('a request for all of some names', () => {
  it('is as if it had been written in one go, whatever the names are', () => {
    const type = protoSchema().messageType(REQUEST);
    const name = fc.string({ unit: 'grapheme', maxLength: 200 });
    fc.assert(
      fc.property(fc.array(name), name, name, name, (names, version, nonce, refusal) => {
        const typeUrl = 'type.googleapis.com/envoy.config.cluster.v3.Cluster';
        const written = encodeMessage(type, {
          version_info: version,
          node: NODE.message,
          resource_names: names,
          type_url: typeUrl,
          response_nonce: nonce,
          error_detail: { code: 13, message: refusal },
        });
        const request = { typeUrl, version, names: requestNames(names), nonce, refusal, node: NODE };
        assert.deepEqual(decodeMessage(type, encodeStateRequest(request)), decodeMessage(type, written));
        assert.deepEqual(JSON.parse(stateRequestText(request)).resource_names ?? [], names);
      }),
    );
  });

  it('names none where all are wanted', () => {
    const bytes = encodeStateRequest({
      typeUrl: 'x',
      version: '',
      names: NO_NAMES,
      nonce: '',
      refusal: undefined,
      node: undefined,
    });
    const { resource_names, type_url } = decodeMessage(protoSchema().messageType(REQUEST), bytes) as unknown as Record<
      string,
      unknown
    >;
    assert.deepEqual([resource_names, type_url], [[], 'x']);
  });
});
