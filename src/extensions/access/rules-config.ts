// RBAC messages → rules of access.

import {
  type Conversion,
  convertCidrRange,
  convertHeaderMatcher,
  convertMatchTemplate,
  convertMatchTree,
  convertMetadataMatch,
  convertStateMatch,
  convertStringMatcher,
  type MatcherMessage,
  type MessageTypes,
  type OpenedExtension,
  rejected,
  type SupportTable,
  supported,
  supportedAs,
  supportedWhole,
  type TreePlace,
  warned,
} from '../../config/index.ts';
import type { StringMatch } from '../../snapshot/index.ts';
import type {
  AccessAction,
  AccessPolicies,
  AccessPolicy,
  AccessRule,
  AccessRules,
  AccessVerdict,
  AddressOf,
} from './settings.ts';

const CONFIG = 'proxy.config.rbac.v3';
const RULES = 'proxy.config.rbac.v3.RBAC';
/** Where decision trees lead. */
const ACTION = 'proxy.config.rbac.v3.Action';

/** What filters say of access: by policies, or by decision trees. */
interface AccessFields {
  readonly rules: RulesMessage | null;
  readonly shadow_rules: RulesMessage | null;
  readonly matcher: MatcherMessage | null;
  readonly shadow_matcher: MatcherMessage | null;
}

type RulesMessage = MessageTypes[typeof RULES];
type PolicyMessage = MessageTypes['proxy.config.rbac.v3.Policy'];
type Permission = MessageTypes['proxy.config.rbac.v3.Permission'];
type Principal = MessageTypes['proxy.config.rbac.v3.Principal'];
type CidrRangeMessage = MessageTypes['proxy.config.core.v3.CidrRange'];
type StringMatcher = MessageTypes['proxy.type.matcher.v3.StringMatcher'];

/** By the numbers of RBAC.Action. */
const ACTIONS: readonly AccessAction[] = ['allow', 'deny', 'log'];
/** In place of what has a fault; nothing is served by it. */
const NOBODY: AccessRule = { kind: 'not', rule: { kind: 'any' } };

export const ACCESS_SUPPORT: SupportTable = {
  [RULES]: {
    otherwise: rejected(),
    fields: {
      action: supported(),
      policies: supported(),
      audit_logging_options: warned('access logs tell whom rules have denied'),
    },
  },
  [`${CONFIG}.Policy`]: {
    // Conditions in CEL would allow less than serving without them.
    otherwise: rejected('there is no CEL; use permissions and principals'),
    fields: { permissions: supported(), principals: supported() },
  },
  [`${CONFIG}.Permission`]: {
    otherwise: rejected(),
    fields: {
      matcher: rejected('use the other kinds of permissions, or the matcher of the filter'),
      uri_template: supportedAs('path matcher', 'of the path without its query'),
      and_rules: supported(),
      or_rules: supported(),
      any: supported(),
      header: supported(),
      destination_ip: supportedWhole(),
      destination_port: supported(),
      destination_port_range: supported(),
      metadata: supportedWhole(),
      sourced_metadata: supportedWhole(),
      not_rule: supported(),
      requested_server_name: supported(),
      url_path: supported(),
    },
  },
  [`${CONFIG}.Permission.Set`]: { otherwise: rejected(), fields: { rules: supported() } },
  [`${CONFIG}.Principal`]: {
    otherwise: rejected(),
    fields: {
      custom: rejected('use the other kinds of principals, or the matcher of the filter'),
      and_ids: supported(),
      or_ids: supported(),
      any: supported(),
      authenticated: supported('by a certificate that has been verified'),
      source_ip: supportedWhole('behind a PROXY protocol header'),
      direct_remote_ip: supportedWhole(),
      remote_ip: supportedWhole('by the trusted hops'),
      header: supported(),
      metadata: supportedWhole(),
      sourced_metadata: supportedWhole(),
      not_id: supported(),
      url_path: supported(),
      filter_state: supportedWhole('a text that is an IP address for `address_match`'),
    },
  },
  [`${CONFIG}.Principal.Set`]: { otherwise: rejected(), fields: { ids: supported() } },
  [`${CONFIG}.Principal.Authenticated`]: { otherwise: rejected(), fields: { principal_name: supported() } },
  [ACTION]: { otherwise: rejected(), fields: { name: supported(), action: supported() } },
  'proxy.type.matcher.v3.PathMatcher': { otherwise: rejected(), fields: { path: supported() } },
  'proxy.type.v3.Int32Range': { otherwise: rejected(), fields: { start: supported(), end: supported() } },
};

/** Rows of the fields that `convertAccess` reads. */
export const ACCESS_FIELDS_SUPPORT = {
  shadow_rules: supported(),
  matcher: supported('in place of `rules`; who it leads nowhere is denied'),
  shadow_matcher: supported('in place of `shadow_rules`'),
};

/**
 * @param prefix of the fields: what is enforced, or what is only judged.
 * @param inputs of the subjects, for decision trees.
 */
export function convertAccess(
  message: AccessFields,
  prefix: '' | 'shadow_',
  at: string,
  inputs: TreePlace<AccessVerdict>['inputs'],
  conversion: Conversion,
): AccessRules | null {
  const rules = message[`${prefix}rules`];
  const matcher = message[`${prefix}matcher`];
  if (matcher === null) return rules && convertRules(rules, `${at}.${prefix}rules`, conversion);
  if (rules !== null) {
    conversion.faults.warning(`${at}.${prefix}rules`, `is ignored: ${prefix}matcher decides in its place`);
  }
  const convertAction = (opened: OpenedExtension, here: string): AccessVerdict | undefined => {
    if (opened.typeName === ACTION) {
      const { name, action } = opened.message as MessageTypes[typeof ACTION];
      return { name, action: ACTIONS[action] ?? 'deny' };
    }
    conversion.faults.error(here, `"${opened.typeName}" is no action of access rules: "${ACTION}" is`);
    return undefined;
  };
  const tree = convertMatchTree(matcher, `${at}.${prefix}matcher`, { inputs, convertAction }, conversion);
  return { kind: 'tree', tree };
}

function convertRules({ action, policies }: RulesMessage, at: string, conversion: Conversion): AccessPolicies {
  const converted = Object.entries(policies).map(([name, policy]) =>
    convertPolicy(name, policy, `${at}.policies["${name}"]`, conversion),
  );
  // The first that fits is the one that counts.
  converted.sort((a, b) => (a.name < b.name ? -1 : 1));
  return { kind: 'policies', action: ACTIONS[action] ?? 'allow', policies: converted };
}

function convertPolicy(name: string, policy: PolicyMessage, at: string, conversion: Conversion): AccessPolicy {
  return {
    name,
    permissions: policy.permissions.map((rule, index) => permissionOf(rule, `${at}.permissions[${index}]`, conversion)),
    principals: policy.principals.map((rule, index) => principalOf(rule, `${at}.principals[${index}]`, conversion)),
  };
}

function permissionOf(message: Permission, at: string, conversion: Conversion): AccessRule {
  const { faults } = conversion;
  const all = (rules: readonly Permission[], field: string): readonly AccessRule[] =>
    rules.map((rule, index) => permissionOf(rule, `${at}.${field}.rules[${index}]`, conversion));
  switch (message.rule) {
    case 'and_rules':
      return { kind: 'all-of', rules: all(message.and_rules!.rules, 'and_rules') };
    case 'or_rules':
      return { kind: 'any-of', rules: all(message.or_rules!.rules, 'or_rules') };
    case 'any':
      return { kind: 'any' };
    case 'header':
      return headerRule(message.header!, `${at}.header`, conversion);
    case 'destination_ip':
      return addressRule('local', message.destination_ip!, `${at}.destination_ip`, conversion);
    case 'destination_port':
      return { kind: 'port', start: message.destination_port, end: message.destination_port + 1 };
    case 'destination_port_range': {
      const { start, end } = message.destination_port_range!;
      return { kind: 'port', start, end };
    }
    case 'metadata':
      return {
        kind: 'metadata',
        source: 'DYNAMIC',
        ...convertMetadataMatch(message.metadata!, `${at}.metadata`, faults),
      };
    case 'sourced_metadata':
      return sourcedMetadata(message.sourced_metadata!, `${at}.sourced_metadata`, conversion);
    case 'not_rule':
      return { kind: 'not', rule: permissionOf(message.not_rule!, `${at}.not_rule`, conversion) };
    case 'requested_server_name':
      return textRule('server-name', message.requested_server_name, `${at}.requested_server_name`, conversion);
    case 'url_path':
      return textRule('path', message.url_path!.path, `${at}.url_path.path`, conversion);
    case 'uri_template': {
      const template = convertMatchTemplate(message.uri_template, `${at}.uri_template`, faults);
      return template === undefined ? NOBODY : { kind: 'path', match: { kind: 'regex', pattern: template.pattern } };
    }
    default:
      return NOBODY;
  }
}

function principalOf(message: Principal, at: string, conversion: Conversion): AccessRule {
  const { faults } = conversion;
  const all = (ids: readonly Principal[], field: string): readonly AccessRule[] =>
    ids.map((id, index) => principalOf(id, `${at}.${field}.ids[${index}]`, conversion));
  switch (message.identifier) {
    case 'and_ids':
      return { kind: 'all-of', rules: all(message.and_ids!.ids, 'and_ids') };
    case 'or_ids':
      return { kind: 'any-of', rules: all(message.or_ids!.ids, 'or_ids') };
    case 'any':
      return { kind: 'any' };
    case 'authenticated': {
      const { principal_name: name } = message.authenticated!;
      if (name === null) return { kind: 'authenticated', name: null };
      const match = convertStringMatcher(name, `${at}.authenticated.principal_name`, faults);
      return match === undefined ? NOBODY : { kind: 'authenticated', name: match };
    }
    case 'source_ip':
      return addressRule('source', message.source_ip!, `${at}.source_ip`, conversion);
    case 'direct_remote_ip':
      return addressRule('direct-remote', message.direct_remote_ip!, `${at}.direct_remote_ip`, conversion);
    case 'remote_ip':
      return addressRule('remote', message.remote_ip!, `${at}.remote_ip`, conversion);
    case 'header':
      return headerRule(message.header!, `${at}.header`, conversion);
    case 'metadata':
      return {
        kind: 'metadata',
        source: 'DYNAMIC',
        ...convertMetadataMatch(message.metadata!, `${at}.metadata`, faults),
      };
    case 'sourced_metadata':
      return sourcedMetadata(message.sourced_metadata!, `${at}.sourced_metadata`, conversion);
    case 'not_id':
      return { kind: 'not', rule: principalOf(message.not_id!, `${at}.not_id`, conversion) };
    case 'url_path':
      return textRule('path', message.url_path!.path, `${at}.url_path.path`, conversion);
    case 'filter_state': {
      const match = convertStateMatch(message.filter_state!, `${at}.filter_state`, faults);
      return match === undefined ? NOBODY : { kind: 'filter-state', match };
    }
    default:
      return NOBODY;
  }
}

function headerRule(message: NonNullable<Permission['header']>, at: string, { faults }: Conversion): AccessRule {
  const match = convertHeaderMatcher(message, at, faults);
  return match === undefined ? NOBODY : { kind: 'header', match };
}

function addressRule(of: AddressOf, message: CidrRangeMessage, at: string, { faults }: Conversion): AccessRule {
  const range = convertCidrRange(message, at, faults);
  return range === undefined ? NOBODY : { kind: 'address', of, range };
}

function textRule(
  kind: 'path' | 'server-name',
  message: StringMatcher | null,
  at: string,
  { faults }: Conversion,
): AccessRule {
  const match: StringMatch | undefined = message === null ? undefined : convertStringMatcher(message, at, faults);
  return match === undefined ? NOBODY : { kind, match };
}

function sourcedMetadata(
  { metadata_matcher: matcher, metadata_source: source }: NonNullable<Permission['sourced_metadata']>,
  at: string,
  { faults }: Conversion,
): AccessRule {
  if (matcher === null) return NOBODY;
  const match = convertMetadataMatch(matcher, `${at}.metadata_matcher`, faults);
  return { kind: 'metadata', source: source === 1 ? 'ROUTE' : 'DYNAMIC', ...match };
}
