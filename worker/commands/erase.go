package commands

import (
	"context"
	"errors"
	"fmt"
	"io"

	"dropbell/adapters/config"
	"dropbell/app"
	"dropbell/domain/staff"
	"dropbell/domain/user"
)

var errPersonUsage = errors.New("usage: worker erase USER, or worker user-data USER, which is a number")

// person erases a user, or prints everything stored about a user. Both run the same use case as
// the console.
func person(ctx context.Context, args []string, getenv func(string) string, out io.Writer) error {
	if len(args) != 2 {
		return config.Mistake{Err: errPersonUsage}
	}
	id, err := user.ParseID(args[1])
	if err != nil {
		return config.Mistake{Err: fmt.Errorf("%q is no user; %w", args[1], errPersonUsage)}
	}
	cfg, err := config.LoadOnly(getenv, databaseVariables()...)
	if err != nil {
		return config.Mistake{Err: err}
	}
	return withDatabase(ctx, cfg, func(stores app.Stores) error {
		s := &user.Service{Store: stores.Users}
		if args[0] == "erase" {
			err := s.Erase(ctx, staff.System(), id)
			if errors.Is(err, user.ErrNotFound) {
				_, err = fmt.Fprintf(out, "user %s was erased before; nothing was left\n", id)
				return err
			}
			if err == nil {
				_, err = fmt.Fprintf(out, "user %s is erased\n", id)
			}
			return err
		}
		raw, err := s.Everything(ctx, staff.System(), id)
		if err == nil {
			_, err = fmt.Fprintln(out, string(raw))
		}
		return err
	})
}
