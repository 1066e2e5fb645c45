// CustomResponse messages, and the policies that their decision trees lead to → settings of the custom_response filter.

import { absoluteTarget } from '../../../base/absolute-target.ts';
import {
  type Conversion,
  convertHeaderAdditions,
  convertMatchTree,
  convertRedirect,
  convertReplyFormat,
  type HttpFilterManifest,
  type MessageTypes,
  RESPONSE_INPUTS,
  readDataSource,
  rejected,
  supported,
  supportedAs,
} from '../../../config/index.ts';
import type {
  CustomResponseCounters,
  CustomResponseSettings,
  LocalPolicy,
  Policy,
  RedirectPolicy,
} from './settings.ts';

const CONFIG = 'proxy.extensions.filters.http.custom_response.v3.CustomResponse';
const POLICIES = 'proxy.extensions.http.custom_response';
const LOCAL = `${POLICIES}.local_response_policy.v3.LocalResponsePolicy` as const;
const REDIRECT = `${POLICIES}.redirect_policy.v3.RedirectPolicy` as const;

type ConfigMessage = MessageTypes[typeof CONFIG];
type LocalMessage = MessageTypes[typeof LOCAL];
type RedirectMessage = MessageTypes[typeof REDIRECT];

const COUNTERS: CustomResponseCounters = {
  noRoute: 'custom_response_redirect_no_route',
  invalidUri: 'custom_response_invalid_uri',
};
const NO_BODY = new Uint8Array();
/** Of responses without a body, which the answer to another request may have. */
const BODILESS: readonly number[] = [204, 205, 304];

export const CUSTOM_RESPONSE: HttpFilterManifest = {
  support: {
    [CONFIG]: { otherwise: rejected(), fields: { custom_response_matcher: supported() } },
    [LOCAL]: {
      otherwise: rejected(),
      fields: {
        body: supported('a file is read at the start'),
        body_format: supported('sees the response at hand'),
        status_code: supported(),
        response_headers_to_add: supported(),
      },
    },
    [REDIRECT]: {
      otherwise: rejected(),
      fields: {
        uri: supported(),
        redirect_action: supportedAs('custom response'),
        status_code: supported('200 to 599, of responses that may have a body'),
        response_headers_to_add: supported(),
        request_headers_to_add: supported(),
        modify_request_headers_action: rejected(
          'nothing in the schema is such an action; request_headers_to_add adds headers',
        ),
      },
    },
    'proxy.config.route.v3.RedirectAction (custom response)': {
      otherwise: rejected(),
      fields: {
        host_redirect: supported(),
        port_redirect: supported(),
        path_redirect: supported(),
        prefix_rewrite: rejected('path_redirect says the whole path'),
        regex_rewrite: rejected('path_redirect says the whole path'),
        response_code: rejected('clients are not redirected'),
        https_redirect: supported('the cluster says whether there is TLS'),
        scheme_redirect: supported('the cluster says whether there is TLS'),
        strip_query: supported(),
      },
    },
  },
  matcherActions: [LOCAL, REDIRECT],
  convert: (message, at, conversion) => ({
    name: 'filters.http.custom_response',
    settings: convertSettings(message as ConfigMessage, at, conversion),
    counters: Object.values(COUNTERS),
  }),
  ofRoutes: {
    type: CONFIG,
    convert: (message, at, conversion) => convertSettings(message as ConfigMessage, at, conversion),
  },
};

function convertSettings(message: ConfigMessage, at: string, conversion: Conversion): CustomResponseSettings {
  let asksOthers = false;
  const convertAction = (action: { typeName: string; message: object }, here: string): Policy | undefined => {
    switch (action.typeName) {
      case LOCAL:
        return convertLocal(action.message as LocalMessage, here, conversion);
      case REDIRECT:
        asksOthers = true;
        return convertOther(action.message as RedirectMessage, here, conversion);
      default:
        conversion.faults.error(here, `"${action.typeName}" is no policy of custom responses`);
        return undefined;
    }
  };
  const { custom_response_matcher: matcher } = message;
  const place = { inputs: RESPONSE_INPUTS, convertAction };
  const tree = matcher && convertMatchTree(matcher, `${at}.custom_response_matcher`, place, conversion);
  return { tree, asksOthers, counters: COUNTERS };
}

function convertLocal(message: LocalMessage, at: string, conversion: Conversion): LocalPolicy {
  const { body, body_format: format, status_code: status, response_headers_to_add: headers } = message;
  return {
    kind: 'local',
    // A copy of its own: a view would take all of the buffer that it looks at along to every worker.
    body: body === null ? NO_BODY : new Uint8Array(readDataSource(body, `${at}.body`, conversion)),
    format: convertReplyFormat(format, `${at}.body_format`, conversion),
    status: status?.value ?? null,
    responseEdits: convertHeaderAdditions(headers, `${at}.response_headers_to_add`, conversion),
  };
}

/** @returns undefined for what leads nowhere; reports it. */
function convertOther(message: RedirectMessage, at: string, conversion: Conversion): RedirectPolicy | undefined {
  const { faults } = conversion;
  const { uri, redirect_action: action, status_code: wanted } = message;
  const status = wanted?.value ?? null;
  if (status !== null && (status < 200 || status > 599 || BODILESS.includes(status))) {
    faults.error(`${at}.status_code`, `${status} is the status of no response that has a body`);
  }
  const target = action === null ? absoluteTarget(uri) : convertRedirect(action, `${at}.redirect_action`, faults);
  if (target === undefined) {
    faults.error(`${at}.uri`, `${JSON.stringify(uri)} is no URL of a host and a path, as in "http://host/path"`);
    return undefined;
  }
  return {
    kind: 'redirect',
    target,
    status,
    requestEdits: convertHeaderAdditions(message.request_headers_to_add, `${at}.request_headers_to_add`, conversion),
    responseEdits: convertHeaderAdditions(message.response_headers_to_add, `${at}.response_headers_to_add`, conversion),
  };
}
