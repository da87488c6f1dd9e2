package audience

import (
	"context"
	"slices"
	"time"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/segment"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// judgedTogether is how many users are judged by one statement for each rule.
const judgedTogether = 50_000

// placeDoor is a door as [Doors.Places] needs it.
type placeDoor struct {
	place   int
	who     template.Who
	frozen  bool
	segment int64
	rule    *segment.Rule
	cutAt   *time.Time
}

// Places implements [reminder.DoorJudge]: it judges each of the users as Judge does. It reads the lists and frozen
// members of the users' chunks, and the users once for each door by rule.
func (s Doors) Places(ctx context.Context, templateID int64, users []user.ID) ([]uint8, error) {
	rows := pg.Rows(ctx, s.Pool, `select d.place, d.who, d.frozen_at is not null, coalesce(d.segment_id, 0), s.rule, d.cut_at
		from doors d left join segments s on s.id = d.segment_id where d.template_id = $1 order by d.place`, templateID)
	doors, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (d placeDoor, err error) {
		return d, row.Scan(&d.place, &d.who, &d.frozen, &d.segment, &d.rule, &d.cutAt)
	})
	if err != nil {
		return nil, pg.Translate(err)
	}
	places := make([]uint8, 0, len(users))
	for part := range slices.Chunk(users, judgedTogether) {
		found, err := s.placesOf(ctx, templateID, doors, part)
		if err != nil {
			return nil, pg.Translate(err)
		}
		places = append(places, found...)
	}
	return places, nil
}

func (s Doors) placesOf(ctx context.Context, templateID int64, doors []placeDoor, users []user.ID) ([]uint8, error) {
	places := make([]uint8, len(users))
	for _, d := range doors {
		var left []user.ID
		for i, id := range users {
			if places[i] == 0 {
				left = append(left, id)
			}
		}
		if len(left) == 0 {
			break
		}
		in, err := s.membersAmong(ctx, templateID, d, left)
		if err != nil {
			return nil, err
		}
		for i, id := range users {
			if places[i] == 0 && (d.who == template.ToAll || in.Contains(uint64(id))) {
				places[i] = uint8(d.place)
			}
		}
	}
	return places, nil
}

// membersAmong returns the members of the door among the users, and possibly others. It is empty for a door for all.
func (s Doors) membersAmong(ctx context.Context, templateID int64, d placeDoor, users []user.ID) (*roaring64.Bitmap, error) {
	in := roaring64.New()
	if d.frozen || d.who == template.ToList {
		sql, args := `select members from door_members where chunk = any($1) and template_id = $2 and place = $3`, []any{chunksOf(users), templateID, d.place}
		if !d.frozen {
			sql, args = `select members from segment_members where chunk = any($1) and segment_id = $2`, []any{chunksOf(users), d.segment}
		}
		rows := pg.Rows(ctx, s.Pool, sql, args...)
		var raw []byte
		if _, err := pgx.ForEachRow(rows, []any{&raw}, func() error {
			b, err := readChunk(raw)
			if err == nil {
				in.Or(b)
			}
			return err
		}); err != nil {
			return nil, err
		}
	}
	if d.who == template.ToCodes {
		return in, s.addIDs(ctx, in, `select user_id from door_codes where template_id = $1 and user_id = any($2)`, templateID, users)
	}
	if d.who != template.ToSegment || d.rule == nil {
		return in, nil
	}
	args := []any{users}
	late := ""
	if d.frozen { // users who were added later are judged by the rule, see judgeDoors
		args, late = append(args, d.cutAt), ` and u.created_at > $2::timestamptz - interval '1 minute'`
	}
	f := compile(*d.rule, args...)
	return in, s.addIDs(ctx, in, `select u.id from users u where u.id = any($1)`+late+` and (`+f.text+`)`, f.args...)
}

// addIDs adds the ids that the statement selects.
func (s Doors) addIDs(ctx context.Context, in *roaring64.Bitmap, sql string, args ...any) error {
	rows := pg.Rows(ctx, s.Pool, sql, args...)
	var id uint64
	_, err := pgx.ForEachRow(rows, []any{&id}, func() error {
		in.Add(id)
		return nil
	})
	return err
}

// chunksOf returns the chunks of the ids, each once.
func chunksOf(users []user.ID) []int64 {
	chunks := make([]int64, len(users))
	for i, id := range users {
		chunks[i] = int64(id) >> chunkBits
	}
	slices.Sort(chunks)
	return slices.Compact(chunks)
}
