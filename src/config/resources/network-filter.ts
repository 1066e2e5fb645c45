// How an extension takes part in the conversion of a filter chain.

import type { NetworkFilterSettings } from '../../snapshot/index.ts';
import type { SupportTable } from '../support/verdict.ts';
import type { Conversion } from './conversion.ts';

/**
 * @returns 'off' for a filter that takes no part, undefined when it has faults.
 * @param at path of its configuration, `…filters[0].typed_config`.
 */
export type ConvertNetworkFilter = (
  message: object,
  at: string,
  conversion: Conversion,
) => NetworkFilterSettings | 'off' | undefined;

/** What an extension says of a network filter to those who read configurations. */
export interface NetworkFilterManifest {
  /** Rows for its message and for those in it that nothing else leads to. */
  readonly support: SupportTable;
  /** Nothing can stand behind it. */
  readonly isTerminal: boolean;
  readonly convert: ConvertNetworkFilter;
}

/** By the full name of the message that configures the filter; those beside the connection manager and the TCP proxy. */
export type NetworkFilterManifests = Readonly<Record<string, NetworkFilterManifest>>;
