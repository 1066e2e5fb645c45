// What a connection manager, or an action of its decision tree, says of X-Forwarded-Client-Cert.

import type { ClientCertificateSettings, HttpConnectionManagerSettings } from '../../snapshot/index.ts';
import { HttpConnectionManager_ForwardClientCertDetails as Details } from '../proto/generated/enums.ts';
import type { MessageTypes } from '../proto/generated/messages.ts';
import { quote } from '../source/node.ts';
import type { Conversion } from './conversion.ts';
import type { OpenedExtension } from './extension.ts';
import { REQUEST_INPUTS } from './matching/match-inputs.ts';
import { convertMatchTree } from './matching/match-tree.ts';
import type { HttpConnectionManager } from './messages.ts';
import { valueOr } from './units.ts';

const ACTION =
  'proxy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager.ForwardClientCertConfig';
const MODES: Readonly<Record<number, ClientCertificateSettings['mode']>> = {
  [Details.FORWARD_ONLY]: 'forward-only',
  [Details.APPEND_FORWARD]: 'append-forward',
  [Details.SANITIZE_SET]: 'sanitize-set',
  [Details.ALWAYS_FORWARD_ONLY]: 'always-forward-only',
};

/** @param at path of the connection manager. */
export function convertForwardedClientCert(
  message: HttpConnectionManager,
  at: string,
  conversion: Conversion,
): Pick<HttpConnectionManagerSettings, 'clientCertificate' | 'clientCertificateMatcher'> {
  const { forward_client_cert_matcher: matcher } = message;
  const clientCertificate = settingsOf(message);
  if (matcher === null) return { clientCertificate };
  const convertAction = (opened: OpenedExtension, here: string): ClientCertificateSettings | undefined => {
    if (opened.typeName === ACTION) return settingsOf(opened.message as MessageTypes[typeof ACTION]);
    conversion.faults.error(here, `${quote(opened.typeName)} is no action here: "${ACTION}" is`);
    return undefined;
  };
  const place = { inputs: REQUEST_INPUTS, convertAction };
  const tree = convertMatchTree(matcher, `${at}.forward_client_cert_matcher`, place, conversion);
  return { clientCertificate, clientCertificateMatcher: tree };
}

function settingsOf({
  forward_client_cert_details: details,
  set_current_client_cert_details: said,
}: MessageTypes[typeof ACTION]): ClientCertificateSettings {
  const { cert = false, chain = false, dns = false, uri = false } = said ?? {};
  return { mode: MODES[details] ?? 'sanitize', subject: valueOr(said?.subject, false), cert, chain, dns, uri };
}
