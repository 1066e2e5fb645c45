// What can be said of a token, in the words that clients and logs get.

export const JwtStatus = {
  ok: 'OK',
  missing: 'Jwt is missing',
  badFormat: 'Jwt is not in the form of Header.Payload.Signature with two dots and 3 sections',
  headerBadBase64: 'Jwt header is an invalid Base64url encoded',
  headerBadJson: 'Jwt header is an invalid JSON',
  headerBadAlgorithm: 'Jwt header [alg] field is required and must be a string',
  headerUnknownAlgorithm: 'Jwt header [alg] is not supported',
  headerBadKeyId: 'Jwt header [kid] field is not a string',
  headerCritical: 'Jwt header [crit] is not supported',
  payloadBadBase64: 'Jwt payload is an invalid Base64url encoded',
  payloadBadJson: 'Jwt payload is an invalid JSON',
  payloadBadIssuer: 'Jwt payload [iss] field is not a string',
  payloadBadSubject: 'Jwt payload [sub] field is not a string',
  payloadBadAudience: 'Jwt payload [aud] field is not a string or a list of strings',
  payloadBadExpiration: 'Jwt payload [exp] field is not a positive number',
  payloadBadNotBefore: 'Jwt payload [nbf] field is not a positive number',
  signatureBadBase64: 'Jwt signature is an invalid Base64url encoded',
  unknownIssuer: 'Jwt issuer is not configured',
  audienceNotAllowed: 'Audiences in Jwt are not allowed',
  notYetValid: 'Jwt not yet valid',
  expired: 'Jwt is expired',
  fetchFailed: 'Jwks remote fetch is failed',
  noKey: "Jwks doesn't have key to match kid or alg from Jwt",
  verificationFails: 'Jwt verification fails',
} as const;

export type JwtStatus = (typeof JwtStatus)[keyof typeof JwtStatus];
