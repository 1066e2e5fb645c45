// HttpService messages → where workers call, by way of a cluster; and which of their fields there are.

import {
  type Conversion,
  durationMsOr,
  type MessageTypes,
  rejected,
  type SupportTable,
  supported,
} from '../config/index.ts';
import type { HttpTarget } from './http-target.ts';

export const HTTP_SERVICE_SUPPORT: SupportTable = {
  'proxy.config.core.v3.HttpService': {
    otherwise: rejected(),
    fields: { http_uri: supported(), request_headers_to_add: supported('as they stand') },
  },
  'proxy.config.core.v3.HttpUri': {
    otherwise: rejected(),
    fields: {
      uri: supported('its path and its host; ext_authz asks only the cluster'),
      cluster: supported(),
      timeout: supported(),
    },
  },
};

type HttpService = MessageTypes['proxy.config.core.v3.HttpService'];

/** @returns undefined where a fault says why. */
export function convertHttpTarget(
  service: HttpService,
  at: string,
  { clusters, faults }: Conversion,
): HttpTarget | undefined {
  const uri = service.http_uri;
  if (uri === null) {
    faults.error(`${at}.http_uri`, 'is required');
    return undefined;
  }
  clusters.checkReference(uri.cluster, `${at}.http_uri.cluster`, faults);
  const parts = /^(?:[a-z][a-z0-9+.-]*:\/\/)?([^/?#\s]+)([/?][^#\s]*)?$/i.exec(uri.uri);
  if (parts === null) {
    faults.error(`${at}.http_uri.uri`, `${JSON.stringify(uri.uri)} is no URI of a host and a path`);
    return undefined;
  }
  const [, host = '', path = '/'] = parts;
  return {
    cluster: uri.cluster,
    host,
    path: path.startsWith('?') ? `/${path}` : path,
    timeoutMs: durationMsOr(uri.timeout, 0),
    headers: service.request_headers_to_add.flatMap(({ header }, index) =>
      header === null ? [] : [fieldOf(header, `${at}.request_headers_to_add[${index}].header`, faults)],
    ),
  };
}

function fieldOf(
  { key, value, raw_value }: { readonly key: string; readonly value: string; readonly raw_value: Uint8Array },
  at: string,
  faults: Conversion['faults'],
): readonly [name: string, value: string] {
  const text = Buffer.from(raw_value.length > 0 ? raw_value : Buffer.from(value)).toString('latin1');
  if (text.includes('%')) faults.warning(at, 'is sent as it stands: nothing is known here of a request to format');
  return [key.toLowerCase(), text];
}
