package pipeline

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2/validation"
)

// IDPattern matches the form of an id. [ParseID] checks the range.
const IDPattern = `^[1-9][0-9]{0,18}$`

// zeroPattern is IDPattern or 0, which means none.
const zeroPattern = `^(0|[1-9][0-9]{0,18})$`

// The same in words. Ids in bodies are strings: JavaScript cannot hold 63 bits.
const (
	IDInBody    = `must be a positive whole number below 2^63 in quotes, such as "17"`
	idElsewhere = "must be a positive whole number below 2^63, such as 17"
	zeroOrID    = "must be 0 or a positive whole number below 2^63, such as 17"
)

// idRule returns the rule for the id at a place, as users read it.
func idRule(place string) string {
	if strings.HasPrefix(place, "body") {
		return IDInBody
	}
	return idElsewhere
}

// idMessages are huma's messages about a text that does not match the pattern.
var (
	notAnID   = fmt.Sprintf(validation.MsgExpectedMatchPattern, IDPattern)
	notZeroOr = fmt.Sprintf(validation.MsgExpectedMatchPattern, zeroPattern)
)

// ParseID parses an id that the schema has matched with [IDPattern].
func ParseID(place, s string) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n <= 0 {
		return 0, Refused(place, "%s", idRule(place))
	}
	return n, nil
}

func Decimal(n int64) string { return strconv.FormatInt(n, 10) }
