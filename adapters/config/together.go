package config

import (
	"errors"
	"fmt"
	"strings"

	"dropbell/domain/fault"
	"dropbell/domain/staff"
)

// together checks the rules that concern several variables.
func (c Config) together() (wrong []error) {
	all := func(names []string, values ...string) {
		var missing []string
		for i, v := range values {
			if v == "" {
				missing = append(missing, names[i])
			}
		}
		if len(missing) > 0 && len(missing) < len(names) {
			wrong = append(wrong, fmt.Errorf("%s and %s belong together; not set: %s",
				strings.Join(names[:len(names)-1], ", "), names[len(names)-1], strings.Join(missing, ", ")))
		}
	}
	need := func(ok bool, msg string) {
		if !ok {
			wrong = append(wrong, errors.New(msg))
		}
	}
	need(c.JWTSecret == "" || c.JWKSURL == "", "give AUTH_JWT_SECRET or AUTH_JWKS_URL, not both")
	if !c.PasswordsOff {
		all([]string{"ADMIN_EMAIL", "ADMIN_PASSWORD"}, c.AdminEmail, c.AdminPassword)
	}
	need(!c.PasswordsOff || c.OIDCIssuer != "", "CONSOLE_PASSWORDS=off needs single sign-on: set OIDC_ISSUER, OIDC_CLIENT_ID and OIDC_CLIENT_SECRET")
	wrong = append(wrong, c.weakPassword()...)
	need(c.demoAtHome(), "ADMIN_PASSWORD is the demo's well-known one: choose another, or have HTTP_ADDR name a loopback address such as 127.0.0.1:8080")
	all([]string{"OIDC_ISSUER", "OIDC_CLIENT_ID", "OIDC_CLIENT_SECRET"},
		c.OIDCIssuer, c.OIDCClientID, c.OIDCClientSecret)
	c.smsTogether(need)
	c.mailTogether(need, all)
	c.walletTogether(all, need)
	all([]string{"PICTURES_S3_ENDPOINT", "PICTURES_S3_BUCKET", "PICTURES_S3_KEY_ID", "PICTURES_S3_SECRET"}, c.Pictures.Endpoint, c.Pictures.Bucket, c.Pictures.KeyID, c.Pictures.Secret)
	all([]string{"EXPORTS_S3_ENDPOINT", "EXPORTS_S3_BUCKET", "EXPORTS_S3_KEY_ID", "EXPORTS_S3_SECRET"}, c.Exports.Endpoint, c.Exports.Bucket, c.Exports.KeyID, c.Exports.Secret)
	need(c.LinkSecret != "" || !c.reported(), "LINK_SECRET is missing: it signs what names a mail in the reports of its provider")
	all([]string{"SITEVERIFY_URL", "SITEVERIFY_SECRET"}, c.SiteVerifyURL, c.SiteVerifySecret)
	need(c.SiteVerifyURL == "" || c.PassSecret != "", "PASS_SECRET is missing: it signs the passes that tokens of SITEVERIFY_URL earn")
	all([]string{"WEBHOOK_URL", "WEBHOOK_SECRET"}, c.WebhookURL, c.WebhookSecret)
	all([]string{"VAPID_PUBLIC_KEY", "VAPID_PRIVATE_KEY", "VAPID_SUBJECT"},
		c.VAPIDPublicKey, c.VAPIDPrivateKey, c.VAPIDSubject)
	all([]string{"APNS_KEY", "APNS_KEY_ID", "APNS_TEAM_ID", "APNS_TOPIC"}, c.APNSKey, c.APNSKeyID, c.APNSTeamID, c.APNSTopic)
	need(!c.APNSLive || c.APNSKey != "", "APNS_LIVE=on needs APNS_KEY, APNS_KEY_ID, APNS_TEAM_ID and APNS_TOPIC")
	wrong = append(wrong, c.cellsTogether()...)
	need(c.vapidPair(), "VAPID_PUBLIC_KEY does not belong to VAPID_PRIVATE_KEY: give both as they were made together")
	return wrong
}

// weakPassword returns the mistakes of ADMIN_PASSWORD apart from its length, which was checked
// when the variable was read.
func (c Config) weakPassword() []error {
	if n := len([]rune(c.AdminPassword)); n < staff.MinPassword || n > staff.MaxPassword {
		return nil
	}
	if f, ok := errors.AsType[*fault.Fields](staff.CheckPassword(c.AdminPassword, c.AdminEmail, "")); ok {
		return []error{fmt.Errorf("ADMIN_PASSWORD %s", f.List[0].Message)}
	}
	return nil
}
