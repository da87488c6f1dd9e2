package coupon

import (
	"errors"
	"io"
	"strings"

	"dropbell/domain/claim"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// readGrants reads the column of the users; a list of one column needs no heading.
func readGrants(rows Rows) ([]GrantRow, error) {
	var list []GrantRow
	column := -1
	for {
		line, cells, err := rows.Next()
		if errors.Is(err, io.EOF) {
			return list, nil
		}
		if err != nil {
			return nil, err
		}
		if column < 0 {
			heading := false
			if column, heading = UserColumn(cells); column < 0 {
				return nil, ErrNoUserColumn
			}
			if heading {
				continue
			}
		}
		if len(list) == MaxGrants {
			return nil, ErrTooManyGrants
		}
		list = append(list, grantRow(line, cells, column))
	}
}

func grantRow(line int64, cells []string, column int) GrantRow {
	r := GrantRow{Line: line}
	if column < len(cells) {
		r.Input = strings.ToValidUTF8(cells[column][:min(len(cells[column]), 64)], "")
		r.UserID, _ = user.ParseID(r.Input) // 0 if the text is no id
	}
	return r
}

// UserColumn finds the column with the users in the first row, -1 if there is
// none, and whether that row is a heading.
func UserColumn(cells []string) (column int, heading bool) {
	if i := user.IDColumn(cells); i >= 0 {
		return i, true
	}
	if len(cells) == 0 {
		return -1, false
	}
	if _, err := user.ParseID(cells[0]); err == nil && len(cells) == 1 {
		return 0, false
	}
	return -1, false
}

// refusedRow says why a row is not even tried, "" if it is.
func refusedRow(r GrantRow) string {
	switch {
	case r.UserID == 0:
		return GrantBadRow
	case !r.Known:
		return GrantUnknown
	case !r.First:
		return GrantDuplicate
	}
	return ""
}

// judge says what giving would do, after as many rows as good were fine.
func judge(rows []GrantRow, t template.Template, good int64) {
	for i := range rows {
		r := &rows[i]
		switch why := refusedRow(*r); {
		case why != "":
			r.Result = why
		case r.Owned >= t.PerUserLimit:
			r.Result = claim.ErrLimit.Code
		case good >= t.StockLeft():
			r.Result = claim.ErrSoldOut.Code
		default:
			r.Result = GrantOK
			good++
		}
	}
}
