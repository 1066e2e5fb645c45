// The TLS of a cluster as its configuration says it.

import type { UpstreamTlsSettings } from '../../src/snapshot/index.ts';
import { clusterNamed, clusterSettings } from './bootstrap.ts';

/** @param fields of an UpstreamTlsContext. */
export function upstreamTls(fields: object = {}): UpstreamTlsSettings {
  const { tls } = clusterSettings(
    clusterNamed('web', {
      transport_socket: {
        name: 'tls',
        typed_config: {
          '@type': 'type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext',
          ...fields,
        },
      },
    }),
  );
  return tls!;
}
