package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"dropbell/adapters/config"
	"dropbell/app"
	"dropbell/domain/staff"
)

// printPasswordLink prints a link with which the member of staff with the e-mail
// address sets a password, for an installation whose admins cannot sign in. An
// admin makes the same link in the console.
func printPasswordLink(ctx context.Context, args []string, getenv func(string) string, out io.Writer) error {
	if len(args) != 1 {
		return config.Mistake{Err: errors.New("worker password-link takes one e-mail address; see worker --help")}
	}
	cfg, err := config.LoadOnly(getenv, append(databaseVariables(), "PUBLIC_URL", "CONSOLE_PASSWORDS")...)
	if err != nil {
		return config.Mistake{Err: err}
	}
	return withDatabase(ctx, cfg, func(stores app.Stores) error {
		service := &staff.Service{Store: stores.Staff, PasswordsOff: cfg.PasswordsOff, Now: func() time.Time { return time.Now().UTC() }}
		_, token, err := service.NewPasswordLinkOf(ctx, args[0])
		switch {
		case errors.Is(err, staff.ErrNotFound):
			return config.Mistake{Err: errors.New("no member of staff has this e-mail address")}
		case errors.Is(err, staff.ErrDisabled), errors.Is(err, staff.ErrPasswordsOff):
			return config.Mistake{Err: err}
		case err != nil:
			return fmt.Errorf("making the link failed: %w", err)
		}
		fmt.Fprintf(out, "%s\nThe link works once, for a limited time, and replaces the one before.\n", staff.PasswordLinkURL(cfg.PublicURL, token))
		return nil
	})
}
