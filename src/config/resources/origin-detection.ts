// original_ip_detection_extensions → how the origin of requests is found out.

import type { OriginDetection } from '../../snapshot/index.ts';
import { convertCidrRanges } from './cidr.ts';
import { openExtension } from './extension.ts';
import type { FaultSink } from './fault-sink.ts';
import type { CustomHeaderConfig, HttpConnectionManager, XffConfig } from './messages.ts';
import { valueOr } from './units.ts';

const CUSTOM_HEADER = 'proxy.extensions.http.original_ip_detection.custom_header.v3.CustomHeaderConfig';
const XFF = 'proxy.extensions.http.original_ip_detection.xff.v3.XffConfig';
const FORBIDDEN = 403;

/** @param at path of the connection manager. @returns nothing where it is not said, to be spread into settings. */
export function convertOriginDetection(
  message: HttpConnectionManager,
  at: string,
  faults: FaultSink,
): { readonly originDetection?: readonly OriginDetection[] } {
  const extensions = message.original_ip_detection_extensions;
  if (extensions.length === 0) return {};
  const here = `${at}.original_ip_detection_extensions`;
  if (valueOr(message.use_remote_address, false)) {
    faults.error(here, 'cannot be given together with use_remote_address, which says who the client is');
  }
  if (message.xff_num_trusted_hops !== 0) {
    faults.error(here, 'cannot be given together with xff_num_trusted_hops: say it in an extension of it');
  }
  const originDetection = extensions.flatMap(({ typed_config }, index): readonly OriginDetection[] => {
    const opened = openExtension(typed_config);
    const place = `${here}[${index}].typed_config`;
    if (opened?.typeName === XFF) return [convertXff(opened.message as XffConfig, place, faults)];
    // What this build lacks has been refused by the support table.
    return opened?.typeName === CUSTOM_HEADER ? [convertHeader(opened.message as CustomHeaderConfig)] : [];
  });
  return { originDetection };
}

function convertXff(message: XffConfig, at: string, faults: FaultSink): OriginDetection {
  const { xff_num_trusted_hops: trustedHops, xff_trusted_cidrs: proxies } = message;
  const appendsPeer = !valueOr(message.skip_xff_append, true);
  if (proxies === null) return { kind: 'hops', trustedHops, appendsPeer };
  if (trustedHops !== 0) faults.error(`${at}.xff_trusted_cidrs`, 'cannot be given together with xff_num_trusted_hops');
  const here = `${at}.xff_trusted_cidrs.cidrs`;
  if (proxies.cidrs.length === 0) faults.error(here, 'names no proxy that is believed');
  return { kind: 'proxies', proxies: convertCidrRanges(proxies.cidrs, here, faults), appendsPeer };
}

function convertHeader(message: CustomHeaderConfig): OriginDetection {
  const status = message.reject_with_status?.code ?? null;
  return {
    kind: 'header',
    name: message.header_name.toLowerCase(),
    isBelieved: message.allow_extension_to_set_address_as_trusted,
    refusalStatus: status === null || (status >= 400 && status <= 511) ? status : FORBIDDEN,
  };
}
