package program

import (
	"bytes"
	"strings"
	"testing"

	"dropbell/adapters/config"
)

// TestKeySetForAnybody: a key set or a secret without issuer or audience is warned about.
func TestKeySetForAnybody(t *testing.T) {
	const jwks = "https://id.example.com/keys"
	for _, c := range []struct {
		cfg  config.Config
		want string
	}{
		{config.Config{JWKSURL: jwks}, "set AUTH_JWT_ISSUER and AUTH_JWT_AUDIENCE"},
		{config.Config{JWKSURL: jwks, JWTIssuer: "shop"}, "set AUTH_JWT_AUDIENCE"},
		{config.Config{JWKSURL: jwks, JWTAud: "dropbell"}, "set AUTH_JWT_ISSUER"},
		{config.Config{JWKSURL: jwks, JWTIssuer: "shop", JWTAud: "dropbell"}, ""},
		{config.Config{JWTSecret: "secret"}, "AUTH_JWT_SECRET is accepted, also one made for another service: set AUTH_JWT_ISSUER and AUTH_JWT_AUDIENCE"},
		{config.Config{JWTSecret: "secret", JWTIssuer: "shop"}, "set AUTH_JWT_AUDIENCE"},
		{config.Config{JWTSecret: "secret", JWTIssuer: "shop", JWTAud: "dropbell"}, ""},
	} {
		var out bytes.Buffer
		warn(c.cfg, c.cfg.Logger("web", &out))
		if said := out.String(); c.want == "" && said != "" || c.want != "" && !strings.Contains(said, c.want+`"`) {
			t.Errorf("%+v: %s", c.cfg, said)
		}
	}
}
