// ExtensionWithMatcher and ExtensionWithMatcherPerRoute messages → settings of a filter that decision trees may pass over.

import {
  type Conversion,
  convertMatchTree,
  type HttpFilterManifest,
  type MatcherMessage,
  type MessageTypes,
  openExtension,
  REQUEST_INPUTS,
  rejected,
  supported,
  supportedAs,
} from '../../../config/index.ts';
import type { MatchDelegateSettings, SkipTree } from './settings.ts';

const DELEGATE = 'proxy.extensions.common.matching.v3.ExtensionWithMatcher';
const PER_ROUTE = 'proxy.extensions.common.matching.v3.ExtensionWithMatcherPerRoute';
const SKIP = 'proxy.extensions.filters.common.matcher.action.v3.SkipFilter';
const TREE_FIELD = 'xds_matcher';
/** A tree that leads nowhere. */
const NEVER: SkipTree = { kind: 'anything' };

export const MATCH_DELEGATE: HttpFilterManifest = {
  support: {
    [DELEGATE]: {
      otherwise: rejected(),
      fields: {
        extension_config: supportedAs('delegated filter'),
        matcher: supported('read as xds_matcher, which goes before it'),
        [TREE_FIELD]: supported('by the request; without it the filter is passed over for none'),
      },
    },
    [PER_ROUTE]: { otherwise: rejected(), fields: { [TREE_FIELD]: supported() } },
    [SKIP]: { otherwise: rejected(), fields: {} },
  },
  matcherActions: [SKIP],
  convert(message, at, conversion, name) {
    const { extension_config: config, xds_matcher: newer, matcher: older } = message as MessageTypes[typeof DELEGATE];
    const field = newer === null ? 'matcher' : TREE_FIELD;
    const matcher = newer ?? older;
    const tree = matcher === null ? NEVER : convertTree(matcher, `${at}.${field}`, conversion);
    const opened = openExtension(config?.typed_config ?? null);
    const manifest = opened && conversion.httpFilters?.[opened.typeName];
    // What this build lacks the support table has reported.
    const filter = manifest?.convert(opened!.message, `${at}.extension_config.typed_config`, conversion, name);
    if (filter === undefined) return undefined;
    const settings: MatchDelegateSettings = { filter, tree };
    return { ...filter, name: 'filters.http.match_delegate', settings };
  },
  ofRoutes: {
    type: PER_ROUTE,
    convert(message, at, conversion) {
      const { xds_matcher: matcher } = message as MessageTypes[typeof PER_ROUTE];
      return matcher === null ? NEVER : convertTree(matcher, `${at}.${TREE_FIELD}`, conversion);
    },
  },
};

/** Of what the tree may lead to there is one thing. */
function convertTree(matcher: MatcherMessage, at: string, conversion: Conversion): SkipTree {
  return convertMatchTree<'skip'>(
    matcher,
    at,
    {
      inputs: REQUEST_INPUTS,
      convertAction({ typeName }, actionAt) {
        if (typeName === SKIP) return 'skip';
        conversion.faults.error(actionAt, `has to be a SkipFilter, not a ${typeName}`);
        return undefined;
      },
    },
    conversion,
  );
}
