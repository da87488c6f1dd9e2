package segment

// Field is the property of a user that a condition compares.
type Field string

// The fields.
const (
	Attribute          Field = "attribute"
	Locale             Field = "locale"
	Timezone           Field = "timezone"
	Contact            Field = "contact"
	OptedOut           Field = "opted_out"
	Created            Field = "created"
	Reserved           Field = "reserved"
	Coupon             Field = "coupon"
	ReservedNotClaimed Field = "reserved_not_claimed"
	Claimed            Field = "claimed"
	// NeverUsedHere is about the coupons of shops: the user has used none of them.
	NeverUsedHere Field = "never_used_here"
	// FirstOrder is that the user is known to have bought nothing yet: no order of the user is stored, and the
	// attribute first_order, which the shop sends, is true.
	FirstOrder Field = "first_order"
)

// Op is how a condition looks at its field.
type Op string

// The operators; [Ops] returns the operators of a field.
const (
	Is            Op = "is"
	IsNot         Op = "is_not"
	OneOf         Op = "one_of"
	NotOneOf      Op = "not_one_of"
	Contains      Op = "contains"
	Exists        Op = "exists"
	Missing       Op = "missing"
	Above         Op = "gt"
	AtLeast       Op = "gte"
	Below         Op = "lt"
	AtMost        Op = "lte"
	Before        Op = "before"
	After         Op = "after"
	WithinDays    Op = "within_days"
	NotWithinDays Op = "not_within_days"
	Has           Op = "has"
	HasNot        Op = "has_not"
	Template      Op = "template"
	NotTemplate   Op = "not_template"
	Holds         Op = "holds"
	Used          Op = "used"
	Expired       Op = "expired"
	Had           Op = "had"
	NeverHad      Op = "never_had"
)

// Value is the type of a condition's values.
type Value string

// The kinds of values.
const (
	NoValue      Value = "none"
	Text         Value = "text"
	Texts        Value = "texts" // one or more
	Number       Value = "number"
	Date         Value = "date" // 2026-11-20 or RFC 3339
	Days         Value = "days" // 1 to 3650
	Languages    Value = "languages"
	Zones        Value = "zones"
	ContactKind  Value = "contact" // email, sms, webpush or phone_verified
	ChannelName  Value = "channel"
	TemplateIDs  Value = "templates"
	ShopNumbers  Value = "shops"
	MaxDays            = 3650
	MaxTemplates       = 20
)

// A known is an operator with the type of its values.
type known struct {
	Op    Op
	Value Value
}

// knowledge lists the fields and their operators in the order in which pages offer them.
var knowledge = []struct {
	Field Field
	Ops   []known
}{
	{Attribute, []known{{Is, Text}, {IsNot, Text}, {OneOf, Texts}, {NotOneOf, Texts}, {Contains, Text}, {Above, Number}, {AtLeast, Number}, {Below, Number},
		{AtMost, Number}, {Before, Date}, {After, Date}, {Exists, NoValue}, {Missing, NoValue}}},
	{Locale, []known{{OneOf, Languages}, {NotOneOf, Languages}}},
	{Timezone, []known{{OneOf, Zones}, {NotOneOf, Zones}}},
	{Contact, []known{{Has, ContactKind}, {HasNot, ContactKind}}},
	{OptedOut, []known{{Is, ChannelName}, {IsNot, ChannelName}}},
	{Created, []known{{WithinDays, Days}, {NotWithinDays, Days}, {Before, Date}, {After, Date}}},
	{Reserved, []known{{Template, TemplateIDs}, {NotTemplate, TemplateIDs}, {WithinDays, Days}, {NotWithinDays, Days}}},
	{Coupon, []known{{Holds, TemplateIDs}, {Used, TemplateIDs}, {Expired, TemplateIDs}, {Had, TemplateIDs}, {NeverHad, TemplateIDs}}},
	{ReservedNotClaimed, []known{{Template, TemplateIDs}}},
	{Claimed, []known{{WithinDays, Days}, {NotWithinDays, Days}}},
	{NeverUsedHere, []known{{OneOf, ShopNumbers}}},
	{FirstOrder, []known{{Is, NoValue}, {IsNot, NoValue}}},
}

// Fields returns every field in the order in which it is offered.
func Fields() []Field {
	list := make([]Field, len(knowledge))
	for i, k := range knowledge {
		list[i] = k.Field
	}
	return list
}

// Ops returns the operators of the field, the usual one first.
func Ops(f Field) []Op {
	var list []Op
	for _, k := range opsOf(f) {
		list = append(list, k.Op)
	}
	return list
}

// ValueOf returns the type of values that the operator takes on the field; false if
// the field does not have the operator.
func ValueOf(f Field, op Op) (Value, bool) {
	for _, k := range opsOf(f) {
		if k.Op == op {
			return k.Value, true
		}
	}
	return "", false
}

func opsOf(f Field) []known {
	for _, k := range knowledge {
		if k.Field == f {
			return k.Ops
		}
	}
	return nil
}

// many reports whether more than one value may be given.
func (v Value) many() bool {
	return v == Texts || v == Languages || v == Zones || v == TemplateIDs || v == ShopNumbers
}

// Many is whether the value's kind takes more than one; for forms.
func (v Value) Many() bool { return v.many() }
