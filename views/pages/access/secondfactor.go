package access

import (
	"context"
	"encoding/base64"
	"net/url"
	"strings"

	"github.com/a-h/templ"

	"dropbell/domain/staff"
	"dropbell/views/ui"
)

func (p SecondStep) action() string {
	if p.Recovery {
		return "/signin/second?with=recovery"
	}
	return "/signin/second"
}

// passkeyForm returns the attributes with the options of the ceremony and the name of the field for
// the browser's answer.
func passkeyForm(ceremony, options, field string) templ.Attributes {
	if options == "" {
		return templ.Attributes{}
	}
	return templ.Attributes{"data-passkey": ceremony, "data-passkey-options": options, "data-passkey-field": field}
}

func factorIcon(k staff.FactorKind) string {
	if k == staff.Passkey {
		return "fingerprint"
	}
	return "device-mobile"
}

// securityURL returns an address below the page of second factors that redirects to the page after
// when it is done.
func securityURL(path, after string) string {
	to := "/account/security" + path
	if after != "" && after != "/" {
		to += "?" + url.Values{"return": {after}}.Encode()
	}
	return to
}

func pngURL(picture []byte) string {
	return "data:image/png;base64," + base64.StdEncoding.EncodeToString(picture)
}

// inFours sets a secret in groups, to be read and typed.
func inFours(secret string) string {
	var b strings.Builder
	for i, r := range secret {
		if i > 0 && i%4 == 0 {
			b.WriteByte(' ')
		}
		b.WriteRune(r)
	}
	return b.String()
}

func (p Confirm) elsewhereURL() string {
	return "/confirm/oidc?" + url.Values{"return": {p.back()}}.Encode()
}

// back returns the page that the member came from, if known.
func (p Confirm) back() string {
	if p.Return != "" {
		return p.Return
	}
	return "/"
}

func (p Staff) policies(ctx context.Context) ui.ChoiceProps {
	c := ui.ChoiceProps{Name: "second_factor", Label: ui.T(ctx, "staff.policy_label"), Value: string(p.Policy), Fixed: p.PolicyFixed}
	for _, v := range []staff.Policy{staff.Required, staff.Optional} {
		c.Options = append(c.Options, ui.Option{Value: string(v), Label: ui.T(ctx, "staff.policy."+string(v)), Help: ui.T(ctx, "staff.policy."+string(v)+".help")})
	}
	return c
}
