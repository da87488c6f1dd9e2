package program

import (
	"log/slog"
	"strings"

	"dropbell/adapters/config"
)

// warn logs, once at the start, settings that are allowed and seldom meant.
func warn(cfg config.Config, log *slog.Logger) {
	if cfg.JWTSecret == "" && cfg.JWKSURL == "" {
		log.Warn("end users cannot sign in: neither AUTH_JWT_SECRET nor AUTH_JWKS_URL is set, so the API refuses their tokens and takes service keys only")
	}
	var open []string
	if cfg.JWTIssuer == "" {
		open = append(open, "AUTH_JWT_ISSUER")
	}
	if cfg.JWTAud == "" {
		open = append(open, "AUTH_JWT_AUDIENCE")
	}
	for _, key := range []struct{ name, value string }{{"a key of AUTH_JWKS_URL", cfg.JWKSURL}, {"AUTH_JWT_SECRET", cfg.JWTSecret}} {
		if key.value != "" && len(open) > 0 {
			log.Warn("every token signed with " + key.name + " is accepted, also one made for another service: set " + strings.Join(open, " and "))
		}
	}
}
