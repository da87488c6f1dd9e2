// Package audience stores users with their contacts and opt-outs, and the segments by rules and
// lists. It also erases users and exports everything about one user.
package audience

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/event"
	"dropbell/domain/staff"
	"dropbell/domain/user"
)

// Users stores users and their preferences.
type Users struct{ *pg.DB }

// NewUsers returns the user store of db.
func NewUsers(db *pg.DB) Users { return Users{db} }

const userColumns = `id, name, email, phone, phone_verified_at, locale, timezone, household, push, devices, opt_outs, quiet_from, quiet_to, attributes, updated_at`

func scanUser(row pgx.CollectableRow) (user.User, error) {
	var u user.User
	var push, devices []byte
	var optOuts int16
	var verified *time.Time
	err := row.Scan(&u.ID, &u.Name, &u.Email, &u.Phone, &verified, &u.Locale, &u.Timezone, &u.Household, &push, &devices, &optOuts,
		&u.Quiet.From, &u.Quiet.To, &u.Attributes, &u.UpdatedAt)
	if err != nil {
		return u, err
	}
	u.OptOuts = uint8(optOuts)
	if verified != nil {
		u.PhoneVerifiedAt = *verified
	}
	return u, errors.Join(json.Unmarshal(push, &u.Push), json.Unmarshal(devices, &u.Devices))
}

// User returns [user.ErrNotFound] if nothing is known about the id.
func (s Users) User(ctx context.Context, id user.ID) (user.User, error) {
	return pg.One(ctx, s.Pool, scanUser, user.ErrNotFound, `select `+userColumns+` from users where id = $1`, id)
}

// HouseholdSize returns how many users are of the household.
func (s Users) HouseholdSize(ctx context.Context, household string) (n int64, err error) {
	err = s.Pool.QueryRow(ctx, `select count(*) from users where household = $1 and household <> ''`, household).Scan(&n)
	return n, pg.Translate(err)
}

// Find returns users with ids above after, by ascending id: the user whose id is text, and the
// users whose name, e-mail or phone begins with text, in any case. An empty text finds all
// users.
func (s Users) Find(ctx context.Context, text string, after user.ID, limit int) (list []user.User, err error) {
	return s.find(ctx, text, begins, after, limit)
}

// FindNamed is [Users.Find] for staff who may not see contacts: an e-mail or phone must equal
// text, so that contacts cannot be guessed letter by letter.
func (s Users) FindNamed(ctx context.Context, text string, after user.ID, limit int) (list []user.User, err error) {
	return s.find(ctx, text, beginsOrIs, after, limit)
}

func (s Users) find(ctx context.Context, text string, match func(column string) string, after user.ID, limit int) (list []user.User, err error) {
	s.DB = s.Reports(ctx)
	text = strings.TrimSpace(text)
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return nil, nil
	}
	where, args := `true`, []any{after, max(1, limit)}
	err = s.Tx(ctx, func(tx pgx.Tx) error {
		if text != "" {
			if where, args, err = narrow(ctx, tx, text, match, args); err != nil {
				return err
			}
		}
		rows, err := tx.Query(ctx, `select `+userColumns+` from users where id > $1 and `+where+` order by id limit $2`, args...)
		if err != nil {
			return err
		}
		list, err = pgx.CollectRows(rows, scanUser)
		return err
	})
	return list, err
}

// fewMatches is up to how many matches are all looked up to sort them by id.
const fewMatches = 10_000

// beginsWith compares in the order of the indexes, so that the planner can use them for any
// text. With "like $1" the planner could not.
const beginsWith = `lower(%s) ~>=~ lower($3) and lower(%[1]s) ~<~ (lower($3) || chr(1114111)) and %[1]s <> ''`

// narrow returns a condition that is cheap for this text. The ids of a rare prefix are read from
// the indexes. A common prefix is found soon by a scan of the ids, which would read the whole
// table for a rare prefix. The planner cannot know whether a prefix is rare, so narrow counts.
func narrow(ctx context.Context, tx pgx.Tx, text string, match func(column string) string, args []any) (string, []any, error) {
	id, _ := user.ParseID(text)
	found := []user.ID{id}
	if _, err := tx.Exec(ctx, `set local enable_seqscan = off`); err != nil {
		return "", nil, err
	}
	for _, column := range []string{"name", "email", "phone"} {
		ids, err := pgx.CollectRows(pg.Rows(ctx, tx, matches(match(column)), text, fewMatches+1), pgx.RowTo[user.ID])
		if err != nil {
			return "", nil, err
		}
		if len(ids) > fewMatches {
			where := `(id = $4 or ` + match("name") + ` or ` + match("email") + ` or ` + match("phone") + `)`
			return where, append(args, text, id), nil
		}
		found = append(found, ids...)
	}
	return `id = any($3)`, append(args, found), nil
}

// matches is the statement for the ids for which the condition holds.
func matches(condition string) string {
	return strings.ReplaceAll(`select id from users where `+condition+` limit $2`, "$3", "$1")
}

// beginsOrIs compares contacts as a whole.
func beginsOrIs(column string) string {
	if column == "name" {
		return begins(column)
	}
	return whole(column)
}

// whole compares all of a contact, so that an index finds it.
func whole(column string) string {
	if column == "phone" { // its index is on the column itself
		return `phone = $3 and phone <> ''`
	}
	return `lower(` + column + `) = lower($3) and ` + column + ` <> ''`
}

func begins(column string) string {
	if column == "phone" { // its index is on the column itself
		return `phone ~>=~ $3 and phone ~<~ ($3 || chr(1114111)) and phone <> ''`
	}
	return fmt.Sprintf(beginsWith, column)
}

// userInput is the table of changes that insertUsers and updateUsers read; a null keeps the
// stored value.
const userInput = `unnest(@ids::bigint[], @names::text[], @emails::text[], @phones::text[], @verified::boolean[], @locales::text[], @timezones::text[], @households::text[],
	@push::jsonb[], @opt_outs::smallint[], @quiet_from::smallint[], @quiet_to::smallint[], @attributes::jsonb[], @patches::jsonb[])
	as i (id, name, email, phone, phone_verified, locale, timezone, household, push, opt_outs, quiet_from, quiet_to, attributes, patch)`

// newAttributes are the attributes of i, or the stored attributes, after the patch of single
// attributes. A patch leaves no nulls.
const newAttributes = `case when i.patch is null then coalesce(i.attributes, u.attributes)
	else jsonb_strip_nulls(coalesce(i.attributes, u.attributes) || i.patch) end`

// newVerified is the instant since when the number is verified after i. A number that changes is
// not verified, unless i says so. A verified number that does not change stays verified.
const newVerified = `case when coalesce(i.phone, u.phone) = '' or i.phone_verified is false then null
	when coalesce(i.phone, u.phone) = u.phone and (u.phone_verified_at is not null or i.phone_verified is null) then u.phone_verified_at
	when i.phone_verified then clock_timestamp() end`

// differs is whether i would change u.
const differs = `(u.name, u.email, u.phone, u.phone_verified_at, u.locale, u.timezone, u.household, u.push, u.opt_outs, u.quiet_from, u.quiet_to, u.attributes)
	is distinct from (coalesce(i.name, u.name), coalesce(i.email, u.email), coalesce(i.phone, u.phone), ` + newVerified + `,
		coalesce(i.locale, u.locale), coalesce(i.timezone, u.timezone), coalesce(i.household, u.household), coalesce(i.push, u.push),
		coalesce(i.opt_outs, u.opt_outs), coalesce(i.quiet_from, u.quiet_from), coalesce(i.quiet_to, u.quiet_to), ` + newAttributes + `)`

// insertUsers returns the ids that are new.
const insertUsers = `
	insert into users (id, name, email, phone, phone_verified_at, locale, timezone, household, push, opt_outs, quiet_from, quiet_to, attributes)
	select id, coalesce(name, ''), coalesce(email, ''), coalesce(phone, ''), case when phone_verified and phone <> '' then clock_timestamp() end, coalesce(locale, ''), coalesce(timezone, ''), coalesce(household, ''),
		coalesce(push, '[]'), coalesce(opt_outs, 0), coalesce(quiet_from, 0), coalesce(quiet_to, 0),
		case when patch is null then coalesce(attributes, '{}') else jsonb_strip_nulls(coalesce(attributes, '{}') || patch) end
	from ` + userInput + ` order by id
	on conflict do nothing returning id`

// updateUsers returns nothing. It skips rows that do not change, so that importing the same list
// every night writes next to nothing.
const updateUsers = `
	update users u set name = coalesce(i.name, u.name), email = coalesce(i.email, u.email), phone = coalesce(i.phone, u.phone), phone_verified_at = ` + newVerified + `,
		locale = coalesce(i.locale, u.locale), timezone = coalesce(i.timezone, u.timezone), household = coalesce(i.household, u.household), push = coalesce(i.push, u.push),
		opt_outs = coalesce(i.opt_outs, u.opt_outs), quiet_from = coalesce(i.quiet_from, u.quiet_from),
		quiet_to = coalesce(i.quiet_to, u.quiet_to), attributes = ` + newAttributes + `, updated_at = now()
	from ` + userInput + `
	where u.id = i.id and ` + differs

// Upsert applies all changes or none; see [user.Store].
func (s Users) Upsert(ctx context.Context, changes []user.Change, e staff.Entry) error {
	sorted := slices.SortedFunc(slices.Values(changes), func(a, b user.Change) int { return int(min(max(a.ID-b.ID, -1), 1)) })
	return s.Tx(ctx, func(tx pgx.Tx) error {
		if err := noneErased(ctx, tx, ids(sorted)); err != nil {
			return err
		}
		if err := upsert(ctx, tx, sorted); err != nil {
			return err
		}
		if e.Action != "" {
			if err := pg.InsertAudit(ctx, tx, e); err != nil {
				return err
			}
		}
		return pg.Announce(ctx, tx, event.UsersChanged,
			event.Users{FromUser: int64(sorted[0].ID), ToUser: int64(sorted[len(sorted)-1].ID)})
	})
}

func upsert(ctx context.Context, tx pgx.Tx, sorted []user.Change) error {
	args, err := userArgs(sorted)
	if err != nil {
		return err
	}
	created, err := pgx.CollectRows(pg.Rows(ctx, tx, insertUsers, args), pgx.RowTo[user.ID])
	if err != nil || len(created) == len(sorted) {
		return err
	}
	known := slices.DeleteFunc(sorted, func(c user.Change) bool {
		_, found := slices.BinarySearch(created, c.ID)
		return found
	})
	// An update through a join locks rows in no particular order, so two imports of the same
	// users could deadlock. Rows are locked by id first.
	if _, err := tx.Exec(ctx, `select 1 from users where id = any($1) order by id for update`, ids(known)); err != nil {
		return err
	}
	if args, err = userArgs(known); err != nil {
		return err
	}
	if _, err = tx.Exec(ctx, updateUsers, args); err != nil {
		return err
	}
	return ownOptOuts(ctx, tx, known)
}

// ownOptOuts marks opt-outs of SMS that changes state as the user's own decisions, which START
// does not revoke, even if STOP had set them before.
func ownOptOuts(ctx context.Context, tx pgx.Tx, changes []user.Change) error {
	stated := slices.DeleteFunc(slices.Clone(changes), func(c user.Change) bool { return c.OptOuts == nil || *c.OptOuts&smsBit == 0 })
	if len(stated) == 0 {
		return nil
	}
	_, err := tx.Exec(ctx, `delete from sms_stops where user_id = any($1)`, ids(stated))
	return err
}

func ids(changes []user.Change) []user.ID {
	list := make([]user.ID, len(changes))
	for i, c := range changes {
		list[i] = c.ID
	}
	return list
}

// userArgs are the parameters of userInput.
func userArgs(changes []user.Change) (pgx.StrictNamedArgs, error) {
	n := len(changes)
	texts := [6][]*string{}
	for i := range texts {
		texts[i] = make([]*string, n)
	}
	verified := make([]*bool, n)
	push, attributes, patch := make([]*string, n), make([]*string, n), make([]*string, n)
	optOuts, quietFrom, quietTo := make([]*int16, n), make([]*int16, n), make([]*int16, n)
	for i, c := range changes {
		texts[0][i], texts[1][i], texts[2][i], texts[3][i], texts[4][i], texts[5][i] = c.Name, c.Email, c.Phone, c.Locale, c.Timezone, c.Household
		verified[i] = c.PhoneVerified
		if c.OptOuts != nil {
			optOuts[i] = new(int16(*c.OptOuts))
		}
		if c.Quiet != nil {
			quietFrom[i], quietTo[i] = new(int16(c.Quiet.From)), new(int16(c.Quiet.To))
		}
		var err error
		if c.Push != nil {
			push[i], err = jsonText(append([]user.PushSubscription{}, *c.Push...))
		}
		if err == nil && c.Attributes != nil {
			attributes[i], err = jsonText(*c.Attributes)
		}
		if err == nil && c.Patch != nil {
			patch[i], err = jsonText(c.Patch)
		}
		if err != nil {
			return nil, err
		}
	}
	return pgx.StrictNamedArgs{"ids": ids(changes), "names": texts[0], "emails": texts[1], "phones": texts[2], "verified": verified, "locales": texts[3],
		"timezones": texts[4], "households": texts[5], "push": push, "opt_outs": optOuts, "quiet_from": quietFrom, "quiet_to": quietTo,
		"attributes": attributes, "patches": patch}, nil
}

func jsonText(v any) (*string, error) {
	b, err := json.Marshal(v)
	return new(string(b)), err
}
