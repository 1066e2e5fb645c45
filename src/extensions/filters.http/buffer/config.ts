// Buffer and BufferPerRoute messages → settings of the buffer filter.

import {
  type BufferMessage,
  type BufferPerRouteMessage,
  type HttpFilterManifest,
  rejected,
  supported,
  warned,
} from '../../../config/index.ts';
import type { BufferSettings } from './settings.ts';

const BUFFER = 'proxy.extensions.filters.http.buffer.v3.Buffer';
const PER_ROUTE = 'proxy.extensions.filters.http.buffer.v3.BufferPerRoute';

export const BUFFER_MANIFEST: HttpFilterManifest = {
  support: {
    [BUFFER]: {
      otherwise: rejected(),
      fields: {
        max_request_bytes: supported("whatever the listener's limit is"),
        max_request_time: warned(
          'request_timeout of the connection manager bounds how long a request may take to arrive',
        ),
      },
    },
    [PER_ROUTE]: { otherwise: rejected(), fields: { disabled: supported(), buffer: supported() } },
  },
  convert: (message) => ({ name: 'filters.http.buffer', settings: settingsOf(message as BufferMessage) }),
  ofRoutes: {
    type: PER_ROUTE,
    convert(message) {
      const { buffer } = message as BufferPerRouteMessage;
      return buffer === null ? 'off' : settingsOf(buffer);
    },
  },
};

function settingsOf({ max_request_bytes: limit }: BufferMessage): BufferSettings {
  // Field rules let nothing else through.
  return { maxRequestBytes: limit?.value ?? 0 };
}
