package user

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"dropbell/domain/fault"
)

// A Target is where a column of an uploaded table goes: a field of a change,
// "attribute:" with a name, or nowhere.
type Target string

// The targets other than attributes.
const (
	Ignored      Target = ""
	ToID         Target = "id"
	ToName       Target = "name"
	ToEmail      Target = "email"
	ToPhone      Target = "phone"
	ToVerified   Target = "phone_verified"
	ToLocale     Target = "locale"
	ToTimezone   Target = "timezone"
	ToHousehold  Target = "household"
	ToOptOuts    Target = "opt_outs"
	ToQuietHours Target = "quiet_hours"

	attributePrefix = "attribute:"
)

// Targets returns every target except attributes, which have names of their own, in
// the order of the template for downloads.
func Targets() []Target {
	return []Target{ToID, ToName, ToEmail, ToPhone, ToVerified, ToLocale, ToTimezone, ToHousehold, ToOptOuts, ToQuietHours}
}

// ToAttribute returns the target of an attribute.
func ToAttribute(name string) Target { return Target(attributePrefix + name) }

// Attribute returns the attribute's name, if t is one.
func (t Target) Attribute() (string, bool) { return strings.CutPrefix(string(t), attributePrefix) }

// ChannelNames returns the channels that can be opted out of, in the order of
// their bits.
func ChannelNames() []string { return []string{"app", "email", "sms", "webpush", "webhook"} }

// A Mapping names the target of each column of a table.
type Mapping []Target

// knownColumns are common column names, without case, spaces and punctuation.
var knownColumns = map[string]Target{
	"id": ToID, "userid": ToID, "uid": ToID, "customerid": ToID, "customernumber": ToID, "客户id": ToID, "客户编号": ToID, "用户id": ToID, "用户编号": ToID, "会员编号": ToID,
	"name": ToName, "fullname": ToName, "username": ToName, "姓名": ToName, "名字": ToName, "昵称": ToName, "名称": ToName,
	"email": ToEmail, "mail": ToEmail, "emailaddress": ToEmail, "邮箱": ToEmail, "电子邮箱": ToEmail, "邮件": ToEmail,
	"phone": ToPhone, "mobile": ToPhone, "phonenumber": ToPhone, "tel": ToPhone, "telephone": ToPhone, "手机": ToPhone, "手机号": ToPhone, "电话": ToPhone,
	"phoneverified": ToVerified, "mobileverified": ToVerified, "phonenumberverified": ToVerified, "手机已验证": ToVerified, "手机号已验证": ToVerified,
	"locale": ToLocale, "language": ToLocale, "lang": ToLocale, "语言": ToLocale,
	"timezone": ToTimezone, "zone": ToTimezone, "tz": ToTimezone, "时区": ToTimezone,
	"household": ToHousehold, "householdid": ToHousehold, "家庭": ToHousehold, "家庭标识": ToHousehold,
	"optouts": ToOptOuts, "optout": ToOptOuts, "unsubscribed": ToOptOuts, "退订": ToOptOuts, "退订渠道": ToOptOuts, "退订方式": ToOptOuts,
	"quiethours": ToQuietHours, "免打扰": ToQuietHours, "免打扰时段": ToQuietHours,
}

var punctuation = regexp.MustCompile(`[\s_.\-/()]+`)

func plain(name string) string { return strings.ToLower(punctuation.ReplaceAllString(name, "")) }

// IDColumn finds the column of user ids by the names in the first row of a table,
// -1 if no name fits. A name with "user" is preferred to a plain "id", which may be
// the id of a coupon.
func IDColumn(header []string) int {
	bare := -1
	for i, name := range header {
		switch word := plain(name); {
		case knownColumns[word] != ToID:
		case word != "id":
			return i
		case bare < 0:
			bare = i
		}
	}
	return bare
}

// GuessMapping reads the first row of a table. An unknown column becomes an attribute
// if its name can be one, and is ignored otherwise.
func GuessMapping(header []string) Mapping {
	m, taken := make(Mapping, len(header)), map[Target]bool{}
	for i, name := range header {
		t, ok := knownColumns[plain(name)]
		if !ok {
			t = Ignored
			if a := attributeName(name); a != "" {
				t = ToAttribute(a)
			}
		}
		if t != Ignored && !taken[t] {
			m[i], taken[t] = t, true
		}
	}
	return m
}

var notInNames = regexp.MustCompile(`[^A-Za-z0-9_.-]+`)

// attributeName makes a name fit, or returns "".
func attributeName(s string) string {
	s = strings.Trim(notInNames.ReplaceAllString(strings.TrimSpace(s), "_"), "_")
	if len(s) > 64 {
		s = s[:64]
	}
	if !attrForm.MatchString(s) {
		return ""
	}
	return s
}

// Check returns a [fault.Fields] that names, as "columns[2]", each column whose
// target cannot be used.
func (m Mapping) Check() error {
	e, seen, attributes := &fault.Fields{}, map[Target]bool{}, 0
	for i, t := range m {
		at := fmt.Sprintf("columns[%d]", i)
		name, isAttribute := t.Attribute()
		switch {
		case t == Ignored:
			continue
		case isAttribute && !attrForm.MatchString(name):
			e.Add(at, "rule.attribute_name", "names must be 1 to 64 letters, digits, dots, dashes or underscores, a letter first")
		case !isAttribute && !slices.Contains(Targets(), t):
			e.Add(at, "rule.import_target", "is not something that can be imported")
		case seen[t]:
			e.Add(at, "rule.import_twice", "another column has this already")
		}
		if seen[t] = true; isAttribute {
			attributes++
		}
	}
	if !seen[ToID] {
		e.Add("columns", "rule.import_id", "one column must hold the user's id")
	}
	if attributes > MaxAttributes {
		e.Add("columns", "rule.too_many", "must have at most %d attributes", MaxAttributes)
	}
	return e.Err()
}

// change reads one row. An empty cell leaves the stored value as it is, or with
// clear removes it. It returns an error for each cell that cannot be read; all other
// values are judged by the rules for changes.
func (m Mapping) change(cells []string, clear bool) (Change, error) {
	c := Change{Patch: map[string]any{}}
	if err := m.fits(cells); err != nil {
		return c, err
	}
	for i, t := range m {
		cell := ""
		if i < len(cells) {
			cell = strings.TrimSpace(cells[i])
		}
		if t == Ignored || cell == "" && !clear && t != ToID {
			continue
		}
		if err := c.set(t, cell); err != nil {
			return c, err
		}
	}
	if len(c.Patch) == 0 {
		c.Patch = nil
	}
	return c, nil
}

// fits refuses a row with text after the last column of the heading: an unquoted
// comma has divided a cell, and the cells after it are in wrong columns.
func (m Mapping) fits(cells []string) error {
	n := len(cells)
	for n > len(m) && strings.TrimSpace(cells[n-1]) == "" {
		n--
	}
	e := &fault.Fields{}
	if n > len(m) {
		e.Add("", "rule.row_cells", "the row has %d cells and the heading only %d; put quotes around text with commas", n, len(m))
	}
	return e.Err()
}

func (c *Change) set(t Target, cell string) (err error) {
	if name, ok := t.Attribute(); ok {
		c.Patch[name] = typed(cell)
		return nil
	}
	switch t {
	case ToID:
		if c.ID, err = ParseID(cell); err != nil {
			return importFault("id", "rule.user_id", "must be a positive decimal number")
		}
	case ToName:
		c.Name = &cell
	case ToEmail:
		c.Email = &cell
	case ToPhone:
		c.Phone = new(dialled(cell))
	case ToVerified:
		c.PhoneVerified, err = readYes(cell)
	case ToLocale:
		c.Locale = new(strings.ReplaceAll(cell, "_", "-"))
	case ToTimezone:
		c.Timezone = &cell
	case ToHousehold:
		c.Household = &cell
	case ToOptOuts:
		c.OptOuts, err = readOptOuts(cell)
	case ToQuietHours:
		c.Quiet, err = readQuiet(cell)
	}
	return err
}

// readYes reads whether something is so; an empty cell says that it is not.
func readYes(cell string) (*bool, error) {
	switch strings.ToLower(cell) {
	case "true", "yes", "1", "是":
		return new(true), nil
	case "false", "no", "0", "", "否":
		return new(false), nil
	}
	return nil, importFault("phone_verified", "rule.yes_no", "must be true or false")
}

func importFault(name, key, text string) error {
	e := &fault.Fields{}
	e.Add(name, key, "%s", text)
	return e
}

var numberForm = regexp.MustCompile(`^-?(0|[1-9][0-9]{0,14})(\.[0-9]{1,9})?$`)

// typed returns the value of an attribute: a number, true, false, or a text. A
// cell that begins with a zero or is very long is a text, not a number. An empty
// cell removes the attribute.
func typed(cell string) any {
	switch strings.ToLower(cell) {
	case "":
		return nil
	case "true":
		return true
	case "false":
		return false
	}
	if numberForm.MatchString(cell) {
		n, _ := strconv.ParseFloat(cell, 64) // the form is one
		return n
	}
	return cell
}

var phoneSigns = strings.NewReplacer(" ", "", "-", "", "(", "", ")", "", ".", "", "\u00a0", "")

// dialled returns a phone number without punctuation and spaces.
func dialled(cell string) string {
	s := phoneSigns.Replace(cell)
	if rest, ok := strings.CutPrefix(s, "00"); ok {
		return "+" + rest
	}
	return s
}

// readOptOuts reads names of channels; "-" and "none" are none of them.
func readOptOuts(cell string) (*uint8, error) {
	var off uint8
	for _, name := range strings.FieldsFunc(strings.ToLower(cell), func(r rune) bool { return strings.ContainsRune(" ,;|、，", r) }) {
		at := slices.Index(ChannelNames(), name)
		switch {
		case at >= 0:
			off |= 1 << at
		case name != "-" && name != "none":
			return nil, importFault("opt_outs", "rule.opt_outs", "must be channels such as email or sms, separated by spaces")
		}
	}
	return &off, nil
}

// readQuiet reads a span such as 22:00-08:00; nothing and "-" are none.
func readQuiet(cell string) (*QuietHours, error) {
	if cell == "" || cell == "-" {
		return &QuietHours{}, nil
	}
	from, to, ok := strings.Cut(strings.NewReplacer("–", "-", " ", "").Replace(cell), "-")
	q, fine := ParseQuietHours(from, to)
	if !ok || !fine {
		return nil, importFault("quiet_hours", "rule.quiet_hours", "must be two times of day such as 22:00-08:00")
	}
	if q.From == q.To {
		return nil, importFault("quiet_hours", "rule.quiet_same", "must begin and end at different times; - removes the quiet hours")
	}
	return &q, nil
}
