package audience

import (
	"context"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/user"
)

// Suggest returns up to limit users of each kind: the user whose id is text, users whose name
// begins with text, and users whose e-mail or phone does, in any case. Without contacts an
// e-mail or phone must equal text, so that contacts cannot be guessed letter by letter. Each
// kind reads no more index entries than it returns, so that a common prefix costs no more than a
// rare prefix. Unlike [Users.Find], Suggest therefore has no order by id and no further page.
func (s Users) Suggest(ctx context.Context, text string, contacts bool, limit int) ([]user.User, error) {
	s.DB = s.Reports(ctx)
	text = strings.TrimSpace(text)
	if text == "" || !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return nil, nil
	}
	id, _ := user.ParseID(text) // 0 is no user's
	list, err := pgx.CollectRows(pg.Rows(ctx, s.Pool, suggestSQL(contacts), text, id, max(1, limit)), scanUser)
	return onceEach(list), pg.Translate(err)
}

// suggestSQL returns rows of users; a user may occur several times.
func suggestSQL(contacts bool) string {
	parts := []string{`select ` + userColumns + ` from users where id = $2`}
	add := func(condition, order string) {
		parts = append(parts, `(select `+userColumns+` from users where `+strings.ReplaceAll(condition, "$3", "$1")+order+` limit $3)`)
	}
	add(begins("name"), ` order by lower(name) using ~<~`)
	if contacts {
		add(begins("email"), ` order by lower(email) using ~<~`)
		add(begins("phone"), ` order by phone using ~<~`)
	} else {
		add(whole("email"), ``)
		add(whole("phone"), ``)
	}
	return strings.Join(parts, "\nunion all ")
}

func onceEach(list []user.User) (once []user.User) {
	seen := map[user.ID]bool{}
	for _, u := range list {
		if !seen[u.ID] {
			seen[u.ID], once = true, append(once, u)
		}
	}
	return once
}
