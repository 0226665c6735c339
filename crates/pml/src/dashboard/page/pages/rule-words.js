// A standing rule in words. Pure, so that Node tests it.

/** `active`, `expired` or `revoked`. */
export function ruleState(rule, now) {
  if (Number.isFinite(rule.revokedAt)) return 'revoked';
  return rule.expiresAt <= now ? 'expired' : 'active';
}

/** Which calls of its tool a rule covers. */
export function whatItCovers(rule) {
  const code = rule.codeHash ? 'in the same code' : 'in any code';
  return rule.arguments ? `the same arguments ${code}` : `any arguments ${code}`;
}
