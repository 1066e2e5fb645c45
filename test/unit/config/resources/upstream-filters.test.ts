// Network filters of upstream connections: which there are, and what is said of those that there are not.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { clusterErrors, clusterNamed, type JsonObject } from '../../../support/bootstrap.ts';

const AT = 'static_resources.clusters[0].filters';
const ECHO = 'type.googleapis.com/envoy.extensions.filters.network.echo.v3.Echo';

function errors(...filters: readonly JsonObject[]): string[] {
  return clusterErrors(clusterNamed('web', { filters }));
}

describe('a filter of upstream connections', () => {
  it('that no build has is an error with its name and the type of its settings', () => {
    const type = 'type.googleapis.com/example.Mine';
    const [error, ...others] = errors({ name: 'example.mine', typed_config: { '@type': type } });
    assert.deepEqual(others, []);
    assert.equal(error?.startsWith(`${AT}[0].typed_config: `), true);
    assert.match(error ?? '', /'example\.mine' .*'type\.googleapis\.com\/example\.Mine'/);
  });

  it('that is one of connections of clients is an error with its name', () => {
    const found = errors(
      { name: 'example.first' },
      { name: 'envoy.filters.network.echo', typed_config: { '@type': ECHO } },
    );
    assert.equal(found.length, 2);
    assert.ok(found[0]!.startsWith(`${AT}[0]`) && found[0]!.includes('example.first'));
    assert.ok(found[1]!.startsWith(`${AT}[1]`) && found[1]!.includes('envoy.filters.network.echo'));
  });

  it('needs a name', () => {
    const [error] = errors({});
    assert.ok(error?.startsWith(`${AT}[0].name: `));
  });

  it('is none in an empty list', () => {
    assert.deepEqual(errors(), []);
  });
});
