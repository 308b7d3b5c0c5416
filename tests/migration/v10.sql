BEGIN TRANSACTION;
CREATE TABLE accounts (
    bot_id       TEXT PRIMARY KEY,
    first_seen   INTEGER NOT NULL,
    connected_at INTEGER NOT NULL,
    offline_at   INTEGER
) WITHOUT ROWID;
INSERT INTO "accounts" VALUES('10001',1790000000000,1790000000000,NULL);
CREATE TABLE alerts (
    kind    TEXT PRIMARY KEY,
    told_at INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO "alerts" VALUES('budget.reflect',1790000000000);
CREATE TABLE blocks (
    bot_id     TEXT NOT NULL,
    user_id    TEXT NOT NULL,
    blocked_at INTEGER NOT NULL,
    blocked_by TEXT NOT NULL,
    PRIMARY KEY (bot_id, user_id)
) WITHOUT ROWID;
INSERT INTO "blocks" VALUES('10001','30009',1790000000000,'30001');
CREATE TABLE chats (
    id          INTEGER PRIMARY KEY,
    bot_id      TEXT NOT NULL,
    kind        TEXT NOT NULL CHECK (kind IN ('group', 'private')),
    peer_id     TEXT NOT NULL,
    name        TEXT NOT NULL DEFAULT '',
    access      TEXT NOT NULL DEFAULT '' CHECK (access IN ('', 'enabled', 'disabled')),
    access_by   TEXT NOT NULL DEFAULT '',
    access_at   INTEGER,
    muted_until INTEGER NOT NULL DEFAULT 0,
    removed_at  INTEGER,
    first_seen  INTEGER NOT NULL,
    last_seen   INTEGER NOT NULL, model TEXT NOT NULL DEFAULT '', model_by TEXT NOT NULL DEFAULT '', model_at INTEGER,
    UNIQUE (bot_id, kind, peer_id)
);
INSERT INTO "chats" VALUES(1,'10001','group','20001','钓鱼群','enabled','30001',1790000000000,0,NULL,1790000000000,1790000008000,'example-model','30001',1790000000000);
INSERT INTO "chats" VALUES(2,'10001','group','20002','','','',NULL,1790000060000,NULL,1790000000000,1790000000000,'','',NULL);
INSERT INTO "chats" VALUES(3,'10001','private','30001','','','',NULL,0,NULL,1790000009000,1790000010000,'','',NULL);
INSERT INTO "chats" VALUES(4,'10001','private','30002','','','',NULL,0,NULL,1790000000000,1790000000000,'','',NULL);
CREATE TABLE cursors (
    chat_id           INTEGER NOT NULL REFERENCES chats (id),
    task              TEXT NOT NULL,
    last_id           INTEGER NOT NULL DEFAULT 0,
    pending           INTEGER NOT NULL DEFAULT 0,
    oldest_pending_at INTEGER,
    newest_pending_at INTEGER, due_until INTEGER NOT NULL DEFAULT 0, batch_limit INTEGER, narrow_until INTEGER NOT NULL DEFAULT 0, quarantined INTEGER NOT NULL DEFAULT 0, unusable INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (chat_id, task)
) WITHOUT ROWID;
INSERT INTO "cursors" VALUES(1,'group',0,6,1790000000000,1790000008000,0,NULL,0,0,0);
INSERT INTO "cursors" VALUES(1,'member-batch',0,6,1790000000000,1790000008000,0,NULL,0,0,0);
INSERT INTO "cursors" VALUES(2,'group',0,1,1790000000000,1790000000000,0,NULL,0,0,0);
INSERT INTO "cursors" VALUES(2,'member-batch',0,1,1790000000000,1790000000000,10,20,10,0,5);
INSERT INTO "cursors" VALUES(3,'private-owner',0,1,1790000009000,1790000009000,0,NULL,0,0,0);
INSERT INTO "cursors" VALUES(4,'private-owner',0,1,1790000000000,1790000000000,0,NULL,0,0,0);
CREATE TABLE early_recalls (
    chat_id     INTEGER NOT NULL REFERENCES chats (id),
    platform_id TEXT NOT NULL,
    recalled_at INTEGER NOT NULL,
    recalled_by TEXT NOT NULL,
    PRIMARY KEY (chat_id, platform_id)
) WITHOUT ROWID;
INSERT INTO "early_recalls" VALUES(1,'799',1790000060000,'30001');
CREATE TABLE ending_messages (
    entry_id   INTEGER NOT NULL REFERENCES entries (id) ON DELETE CASCADE,
    message_id INTEGER NOT NULL REFERENCES messages (id),
    PRIMARY KEY (entry_id, message_id)
) WITHOUT ROWID;
INSERT INTO "ending_messages" VALUES(2,3);
CREATE TABLE entries (
    id            INTEGER PRIMARY KEY,
    stream_id     INTEGER NOT NULL REFERENCES streams (id),
    number        INTEGER NOT NULL,
    document      TEXT NOT NULL CHECK (document IN ('profile', 'pattern', 'daily', 'memory', 'note')),
    type          TEXT,
    date          TEXT,
    text          TEXT NOT NULL,
    tier          TEXT NOT NULL CHECK (tier IN ('working', 'episodic', 'profile')),
    pinned        INTEGER NOT NULL DEFAULT 0,
    source_task   TEXT NOT NULL,
    created_at    INTEGER NOT NULL,
    updated_at    INTEGER NOT NULL,
    ended_at      INTEGER,
    ended_by      TEXT CHECK (ended_by IN ('superseded', 'compressed', 'fallen', 'forgotten', 'expired')),
    ended_why     TEXT NOT NULL DEFAULT '', set_aside INTEGER NOT NULL DEFAULT 0, uses INTEGER NOT NULL DEFAULT 0, used_on TEXT, tier_since INTEGER NOT NULL DEFAULT 0,
    UNIQUE (stream_id, number)
);
INSERT INTO "entries" VALUES(1,1,1,'memory',NULL,'2026-09-21','七点出发','episodic',0,'group',1790000060000,1790000060000,NULL,NULL,'',0,0,NULL,1790000060000);
INSERT INTO "entries" VALUES(2,1,2,'profile',NULL,NULL,'钓鱼的群','profile',0,'group',1790000060000,1790000060000,1790000060000,'superseded','不钓鱼了',0,0,NULL,1790000060000);
INSERT INTO "entries" VALUES(3,2,1,'profile','name',NULL,'叫小鱼','profile',0,'member-batch',1790000060000,1790000060000,NULL,NULL,'',0,0,NULL,1790000060000);
INSERT INTO "entries" VALUES(4,2,2,'daily',NULL,'2026-09-21','去湖边钓鱼','episodic',0,'member-batch',1790000060000,1790000060000,1790000060000,'compressed','',0,0,NULL,1790000060000);
INSERT INTO "entries" VALUES(5,2,3,'memory',NULL,'2026-09-21','去湖边钓鱼','episodic',0,'compress',1790000060000,1790000060000,NULL,NULL,'',0,0,NULL,1790000060000);
CREATE TABLE 'entry_index_config'(k PRIMARY KEY, v) WITHOUT ROWID;
INSERT INTO "entry_index_config" VALUES('version',4);
CREATE TABLE 'entry_index_content'(id INTEGER PRIMARY KEY, c0, c1, c2);
INSERT INTO "entry_index_content" VALUES(1,'s1','七 点 出 发','s1七点 s1点出 s1出发');
INSERT INTO "entry_index_content" VALUES(2,'s1','钓 鱼 的 群','s1钓鱼 s1鱼的 s1的群');
INSERT INTO "entry_index_content" VALUES(3,'s2','叫 小 鱼','s2叫小 s2小鱼');
INSERT INTO "entry_index_content" VALUES(4,'s2','去 湖 边 钓 鱼','s2去湖 s2湖边 s2边钓 s2钓鱼');
INSERT INTO "entry_index_content" VALUES(5,'s2','去 湖 边 钓 鱼','s2去湖 s2湖边 s2边钓 s2钓鱼');
CREATE TABLE 'entry_index_data'(id INTEGER PRIMARY KEY, block BLOB);
INSERT INTO "entry_index_data" VALUES(1,X'05051510');
INSERT INTO "entry_index_data" VALUES(10,X'000000000105050005010101020101030101040101050101');
INSERT INTO "entry_index_data" VALUES(137438953473,X'00000059033073310102020306E4B883E782B901060102020306E587BAE58F9101060102040306E782B9E587BA01060102030103E4B88301060101020103E587BA010601010402028F9101060101050103E782B9010601010304070D0D0D0A0A09');
INSERT INTO "entry_index_data" VALUES(274877906945,X'00000057033073310202020306E79A84E7BEA402060102040306E99293E9B1BC02060102020405B1BCE79A8402060102030103E79A8402060101040202BEA402060101050103E9929302060101020202B1BC020601010304070D0D0C0A090A');
INSERT INTO "entry_index_data" VALUES(412316860417,X'00000041033073320302020306E58FABE5B08F03060102020405B08FE9B1BC03060102030103E58FAB03060101020202B08F03060101030103E9B1BC030601010404070D0C0A09');
INSERT INTO "entry_index_data" VALUES(549755813889,X'00000070033073320402020306E58EBBE6B99604060102020306E6B996E8BEB904060102030306E8BEB9E9929304060102040306E99293E9B1BC04060102050103E58EBB04060101020103E6B99604060101030103E8BEB904060101040103E9929304060101050202B1BC040601010604070D0D0D0D0A0A0A0A');
INSERT INTO "entry_index_data" VALUES(687194767361,X'00000070033073320502020306E58EBBE6B99605060102020306E6B996E8BEB905060102030306E8BEB9E9929305060102040306E99293E9B1BC05060102050103E58EBB05060101020103E6B99605060101030103E8BEB905060101040103E9929305060101050202B1BC050601010604070D0D0D0D0A0A0A0A');
CREATE TABLE 'entry_index_docsize'(id INTEGER PRIMARY KEY, sz BLOB);
INSERT INTO "entry_index_docsize" VALUES(1,X'010403');
INSERT INTO "entry_index_docsize" VALUES(2,X'010403');
INSERT INTO "entry_index_docsize" VALUES(3,X'010302');
INSERT INTO "entry_index_docsize" VALUES(4,X'010504');
INSERT INTO "entry_index_docsize" VALUES(5,X'010504');
CREATE TABLE 'entry_index_idx'(segid, term, pgno, PRIMARY KEY(segid, term)) WITHOUT ROWID;
INSERT INTO "entry_index_idx" VALUES(1,X'',2);
INSERT INTO "entry_index_idx" VALUES(2,X'',2);
INSERT INTO "entry_index_idx" VALUES(3,X'',2);
INSERT INTO "entry_index_idx" VALUES(4,X'',2);
INSERT INTO "entry_index_idx" VALUES(5,X'',2);
CREATE TABLE entry_sources (
    entry_id  INTEGER NOT NULL REFERENCES entries (id) ON DELETE CASCADE,
    source_id INTEGER NOT NULL REFERENCES entries (id) ON DELETE CASCADE,
    PRIMARY KEY (entry_id, source_id)
) WITHOUT ROWID;
INSERT INTO "entry_sources" VALUES(5,4);
CREATE TABLE image_descriptions (
    message_id  INTEGER NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
    number      INTEGER NOT NULL,
    hash        TEXT NOT NULL,
    description TEXT NOT NULL,
    model       TEXT NOT NULL,
    at          INTEGER NOT NULL,
    PRIMARY KEY (message_id, number)
) WITHOUT ROWID;
INSERT INTO "image_descriptions" VALUES(6,1,'0000000000000000000000000000000000000000000000000000000000000000','一只橘猫','example-eyes',1790000060000);
CREATE TABLE lessons (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    tool       TEXT NOT NULL,
    chat_id    INTEGER REFERENCES chats (id),
    keywords   TEXT NOT NULL,
    symptom    TEXT NOT NULL,
    cause      TEXT NOT NULL,
    action     TEXT NOT NULL,
    outcome    TEXT NOT NULL CHECK (outcome = 'resolved'),
    created_at INTEGER NOT NULL,
    renewed_at INTEGER NOT NULL,
    uses       INTEGER NOT NULL DEFAULT 0,
    edited_by  TEXT NOT NULL DEFAULT ''
);
INSERT INTO "lessons" VALUES(1,'remind',3,'["时间"]','时间不对','参数不合适 at','at 从 <空> 改成 <日期>','resolved',1790000000000,1790000000000,0,'');
CREATE TABLE members (
    id         INTEGER PRIMARY KEY,
    bot_id     TEXT NOT NULL,
    user_id    TEXT NOT NULL,
    nickname   TEXT NOT NULL DEFAULT '',
    anonymous  INTEGER NOT NULL DEFAULT 0,
    first_seen INTEGER NOT NULL,
    last_seen  INTEGER NOT NULL, cross_group INTEGER NOT NULL DEFAULT 1,
    UNIQUE (bot_id, user_id)
);
INSERT INTO "members" VALUES(1,'10001','30001','nick-30001',0,1790000000000,1790000009000,1);
INSERT INTO "members" VALUES(2,'10001','30002','Bruno',0,1790000000000,1790000002000,1);
INSERT INTO "members" VALUES(3,'10001','10001','',0,1790000004000,1790000010000,1);
INSERT INTO "members" VALUES(4,'10001','80000000','面具',1,1790000006000,1790000006000,1);
CREATE TABLE memberships (
    chat_id    INTEGER NOT NULL REFERENCES chats (id),
    member_id  INTEGER NOT NULL REFERENCES members (id),
    card       TEXT NOT NULL DEFAULT '',
    role       TEXT NOT NULL DEFAULT '',
    title      TEXT NOT NULL DEFAULT '',
    joined_at  INTEGER,
    left_at    INTEGER,
    first_seen INTEGER NOT NULL,
    last_seen  INTEGER NOT NULL,
    PRIMARY KEY (chat_id, member_id)
) WITHOUT ROWID;
INSERT INTO "memberships" VALUES(1,1,'鲸鱼','','',NULL,NULL,1790000000000,1790000060000);
INSERT INTO "memberships" VALUES(1,2,'小鱼','admin','',NULL,NULL,1790000002000,1790000060000);
INSERT INTO "memberships" VALUES(1,4,'','','',NULL,NULL,1790000006000,1790000006000);
INSERT INTO "memberships" VALUES(2,2,'','','',NULL,1790000060000,1790000000000,1790000000000);
CREATE TABLE 'message_index_config'(k PRIMARY KEY, v) WITHOUT ROWID;
INSERT INTO "message_index_config" VALUES('version',4);
CREATE TABLE 'message_index_data'(id INTEGER PRIMARY KEY, block BLOB);
INSERT INTO "message_index_data" VALUES(1,X'0A7F');
INSERT INTO "message_index_data" VALUES(10,X'00000000010D0D000D0101010201010301010401010501010601010701010801010901010A01010B01010C01010D0101');
INSERT INTO "message_index_data" VALUES(137438953473,X'000000370830643164323032360108023039010A0232310101046D316D31010105E4BDA06731010405E5A5BD6731010105E5A5BD673101040A0505070808');
INSERT INTO "message_index_data" VALUES(274877906945,X'000000370830643164323032360208023039020A0232310201046D316D31020105E4BDA06731020405E5A5BD6731020105E5A5BD673102040A0505070808');
INSERT INTO "message_index_data" VALUES(412316860417,X'000000370830643164323032360308023039030A0232310301046D316D32030105E4BDA06731030405E5A5BD6731030105E5A5BD673103040A0505070808');
INSERT INTO "message_index_data" VALUES(549755813889,X'000000750830643164323032360408023039040A0232310401046D316D31040105E4B8836731040405E782B96731040105E587BA6731040405E58F9167310402048F916731040204A4A96731040405E4B8836731040105E6988E6731040405E5A4A96731040105E782B96731040405E587BA673104040A05050708080808070708080808');
INSERT INTO "message_index_data" VALUES(687194767361,X'000000760830643164323032360508023039050A0232310501046D316D33050105E4B8836731050405E782B96731050105E5A4A96731050405E4B8836731050204A5BD6731050405EFBC8C6731050105E6988E6731050405E5A4A96731050105E782B96731050105EFBC8C6731050405E6988E673105040A05050708080808070808080808');
INSERT INTO "message_index_data" VALUES(824633720833,X'000000C40530303067310602033167310602026731060104313067310602026731060205EFBC896731060107643164323032360608023039060A0232310601046D316D310601087731773130303031060105E59BBE6731060405E789876731060204BF866731060405EFBC886731060105E789876731060405EFBCBD6731060204BEA46731060405E5BF866731060106EFBC883167310604026731060303896731060303A06731060405E7BEA46731060303BB6731060405E59BBE6731060303BD673106040706050705080A0505070B080807080808070809050606080608');
INSERT INTO "message_index_data" VALUES(962072674305,X'0000008D0830643164323032360708023039070A0232310701046D316D34070105E4B88D6731070405E79FA56731070204B99F6731070405E4B88D6731070105E688916731070405E698AF673107020498AF6731070405E8B0816731070105E79FA56731070405E981936731070105E8B0816731070405E4B99F6731070105E981936731070405E68891673107040A05050708080708080807080808080808');
INSERT INTO "message_index_data" VALUES(1099511627777,X'000000470830643164323032360908023039090A0232310901046D316D31090105E4BA866731090105E8AFB46731090405E994996731090105E994996731090405E4BA86673109040A05050708080808');
INSERT INTO "message_index_data" VALUES(1236950581249,X'000000460830643264323032360A080230390A0A0232310A01046D326D320A0105E588AB67320A0405E79A8467320A0105E79A8467320A0405E7BEA467320A0204BEA467320A040A05050708080808');
INSERT INTO "message_index_data" VALUES(1374389534721,X'000000360830643364323032360B080230390B0A0232310B01046D336D310B0105E5909767330B02049CA867330B0405E5909767330B040A0505070807');
INSERT INTO "message_index_data" VALUES(1511828488193,X'000000560830643464323032360D080230390D0A0232310D01046D346D310D0105E4B8B467340D0405E697B667340D0204BC9A67340D0405E8AF9D67340D0105E697B667340D0405E4BC9A67340D0105E8AF9D67340D040A050507080807080808');
INSERT INTO "message_index_data" VALUES(1649267441665,X'0000005008306431643230323609000802303909000A023231090001046D316D3109000105E4BA86673109000105E8AFB4673109000405E99499673109000105E99499673109000405E4BA8667310900040B06060809090909');
INSERT INTO "message_index_data" VALUES(1786706395137,X'000000BA0830643464323032360D0000080230390D00000A0232310D000001046D346D310D00000105E4B8B467340D000405E697B667340D000204BC9A67340D000405E8AF9D67340D000105E5A4A767340D0405E9B1BC67340D0105E697B667340D000405E4BC9A67340D000204B99667340D0405E8BEB967340D0105E8A78167340D0204AF9D67340D000204BEB967340D0405E8A78167340D0105E9B1BC67340D0405EFBC9A67340D0105EFBC9A67340D0405E6B99667340D040C0707090909080908080909070808080708080808');
CREATE TABLE 'message_index_idx'(segid, term, pgno, PRIMARY KEY(segid, term)) WITHOUT ROWID;
INSERT INTO "message_index_idx" VALUES(1,X'',2);
INSERT INTO "message_index_idx" VALUES(2,X'',2);
INSERT INTO "message_index_idx" VALUES(3,X'',2);
INSERT INTO "message_index_idx" VALUES(4,X'',2);
INSERT INTO "message_index_idx" VALUES(5,X'',2);
INSERT INTO "message_index_idx" VALUES(6,X'',2);
INSERT INTO "message_index_idx" VALUES(7,X'',2);
INSERT INTO "message_index_idx" VALUES(8,X'',2);
INSERT INTO "message_index_idx" VALUES(9,X'',2);
INSERT INTO "message_index_idx" VALUES(10,X'',2);
INSERT INTO "message_index_idx" VALUES(11,X'',2);
INSERT INTO "message_index_idx" VALUES(12,X'',2);
INSERT INTO "message_index_idx" VALUES(13,X'',2);
CREATE TABLE message_index_state (
    id           INTEGER PRIMARY KEY CHECK (id = 1),
    filled_from  INTEGER NOT NULL,
    filled_until INTEGER NOT NULL,
    erased       INTEGER NOT NULL DEFAULT 0
);
INSERT INTO "message_index_state" VALUES(1,0,13,1);
CREATE TABLE message_vectors (
    message_id INTEGER PRIMARY KEY REFERENCES messages (id) ON DELETE CASCADE,
    space_id   INTEGER NOT NULL,
    page_id    INTEGER NOT NULL,
    slot       INTEGER NOT NULL,
    vector     BLOB NOT NULL
);
INSERT INTO "message_vectors" VALUES(1,1,4,6,X'D771363B7F7F7F7F7F7F7F7F');
INSERT INTO "message_vectors" VALUES(2,1,4,5,X'D771363B7F7F7F7F7F7F7F7F');
INSERT INTO "message_vectors" VALUES(3,1,4,4,X'D771363B7F7F7F7F7F7F7F7F');
INSERT INTO "message_vectors" VALUES(4,1,4,3,X'D771363B7F7F7F7F7F7F7F7F');
INSERT INTO "message_vectors" VALUES(5,1,4,2,X'D771363B7F7F7F7F7F7F7F7F');
INSERT INTO "message_vectors" VALUES(6,1,4,1,X'D771363B7F7F7F7F7F7F7F7F');
INSERT INTO "message_vectors" VALUES(7,1,4,0,X'D771363B7F7F7F7F7F7F7F7F');
INSERT INTO "message_vectors" VALUES(10,1,3,0,X'D771363B7F7F7F7F7F7F7F7F');
INSERT INTO "message_vectors" VALUES(11,1,2,0,X'D771363B7F7F7F7F7F7F7F7F');
CREATE TABLE messages (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    chat_id         INTEGER NOT NULL REFERENCES chats (id),
    member_id       INTEGER NOT NULL REFERENCES members (id),
    platform_id     TEXT NOT NULL,
    direction       TEXT NOT NULL CHECK (direction IN ('inbound', 'outbound')),
    kind            TEXT NOT NULL CHECK (kind IN ('chat', 'command', 'notice')),
    sent_at         INTEGER NOT NULL,
    received_at     INTEGER NOT NULL,
    local_date      TEXT NOT NULL,
    sequence        INTEGER,
    sender_name     TEXT NOT NULL,
    sender_role     TEXT NOT NULL DEFAULT '',
    segments        TEXT NOT NULL,
    text            TEXT NOT NULL,
    reply_to        TEXT,
    mentions        TEXT NOT NULL DEFAULT '[]',
    temporary_group TEXT,
    counted         INTEGER NOT NULL DEFAULT 0,
    recalled_at     INTEGER,
    recalled_by     TEXT, forgotten_at INTEGER,
    UNIQUE (chat_id, platform_id, sent_at)
);
INSERT INTO "messages" VALUES(1,1,1,'-1712345678','inbound','chat',1790000000000,1790000000000,'2026-09-21',5001,'小鱼','','[{"type": "text", "data": {"text": "你好"}}]','你好',NULL,'[]',NULL,1,NULL,NULL,NULL);
INSERT INTO "messages" VALUES(2,1,1,'701','inbound','chat',1790000001000,1790000001000,'2026-09-21',NULL,'大鱼','','[{"type": "text", "data": {"text": "你好"}}]','你好',NULL,'[]',NULL,1,NULL,NULL,NULL);
INSERT INTO "messages" VALUES(3,1,2,'702','inbound','chat',1790000002000,1790000002000,'2026-09-21',NULL,'小鱼','','[{"type": "text", "data": {"text": "你好"}}]','你好',NULL,'[]',NULL,1,NULL,NULL,NULL);
INSERT INTO "messages" VALUES(4,1,1,'703','inbound','chat',1790000003000,1790000003000,'2026-09-21',NULL,'nick-30001','','[{"type": "text", "data": {"text": "明天七点出发"}}]','明天七点出发','701','[]',NULL,1,NULL,NULL,NULL);
INSERT INTO "messages" VALUES(5,1,3,'704','outbound','chat',1790000004000,1790000004000,'2026-09-21',5005,'10001','','[{"type": "text", "data": {"text": "好，明天七点"}}]','好，明天七点',NULL,'[]',NULL,0,NULL,NULL,NULL);
INSERT INTO "messages" VALUES(6,1,1,'705','inbound','chat',1790000005000,1790000005000,'2026-09-21',NULL,'nick-30001','','[{"type": "at", "data": {"qq": "10001"}}, {"type": "image", "data": {"file": "a.jpg"}}]','@群忆(10001) [图片]',NULL,'["10001"]',NULL,1,NULL,NULL,NULL);
INSERT INTO "messages" VALUES(7,1,4,'706','inbound','chat',1790000006000,1790000006000,'2026-09-21',NULL,'面具','','[{"type": "text", "data": {"text": "谁也不知道我是谁"}}]','谁也不知道我是谁',NULL,'[]',NULL,1,NULL,NULL,NULL);
INSERT INTO "messages" VALUES(8,1,1,'707','inbound','command',1790000007000,1790000007000,'2026-09-21',NULL,'nick-30001','','[{"type": "text", "data": {"text": "/帮助"}}]','/帮助',NULL,'[]',NULL,0,NULL,NULL,NULL);
INSERT INTO "messages" VALUES(9,1,1,'708','inbound','chat',1790000008000,1790000008000,'2026-09-21',NULL,'nick-30001','','[]','',NULL,'[]',NULL,0,1790000060000,'30001',NULL);
INSERT INTO "messages" VALUES(10,2,2,'701','inbound','chat',1790000000000,1790000000000,'2026-09-21',NULL,'nick-30002','','[{"type": "text", "data": {"text": "别的群"}}]','别的群',NULL,'[]',NULL,1,NULL,NULL,NULL);
INSERT INTO "messages" VALUES(11,3,1,'801','inbound','chat',1790000009000,1790000009000,'2026-09-21',NULL,'nick-30001','','[{"type": "text", "data": {"text": "在吗"}}]','在吗',NULL,'[]',NULL,1,NULL,NULL,NULL);
INSERT INTO "messages" VALUES(12,3,3,'802','outbound','notice',1790000010000,1790000010000,'2026-09-21',NULL,'10001','','[]','',NULL,'[]',NULL,0,NULL,NULL,NULL);
INSERT INTO "messages" VALUES(13,4,1,'803','inbound','chat',1790000000000,1790000000000,'2026-09-21',NULL,'nick-30001','','[{"type": "text", "data": {"text": "临时会话"}}]','大鱼：湖边见',NULL,'[]','20001',1,NULL,NULL,NULL);
CREATE TABLE names (
    member_id  INTEGER NOT NULL REFERENCES members (id),
    chat_id    INTEGER REFERENCES chats (id),
    name       TEXT NOT NULL,
    first_seen INTEGER NOT NULL,
    last_seen  INTEGER NOT NULL
);
INSERT INTO "names" VALUES(1,NULL,'Fish',1790000000000,1790000001000);
INSERT INTO "names" VALUES(1,1,'小鱼',1790000000000,1790000000000);
INSERT INTO "names" VALUES(1,1,'大鱼',1790000001000,1790000001000);
INSERT INTO "names" VALUES(2,NULL,'Bruno',1790000002000,1790000002000);
INSERT INTO "names" VALUES(2,1,'小鱼',1790000002000,1790000002000);
INSERT INTO "names" VALUES(1,NULL,'nick-30001',1790000000000,1790000009000);
INSERT INTO "names" VALUES(4,NULL,'面具',1790000006000,1790000006000);
INSERT INTO "names" VALUES(2,NULL,'nick-30002',1790000000000,1790000000000);
INSERT INTO "names" VALUES(1,1,'鲸鱼',1790000060000,1790000060000);
CREATE TABLE notices (
    chat_id   INTEGER NOT NULL REFERENCES chats (id),
    member_id INTEGER REFERENCES members (id),
    kind      TEXT NOT NULL,
    given_at  INTEGER NOT NULL
);
INSERT INTO "notices" VALUES(1,NULL,'privacy',1790000000000);
INSERT INTO "notices" VALUES(1,1,'unconfigured',1790000000000);
CREATE TABLE proof_messages (
    proof_id   INTEGER NOT NULL REFERENCES proofs (id) ON DELETE CASCADE,
    message_id INTEGER NOT NULL REFERENCES messages (id),
    PRIMARY KEY (proof_id, message_id)
) WITHOUT ROWID;
INSERT INTO "proof_messages" VALUES(2,1);
INSERT INTO "proof_messages" VALUES(4,1);
INSERT INTO "proof_messages" VALUES(3,2);
INSERT INTO "proof_messages" VALUES(1,4);
INSERT INTO "proof_messages" VALUES(5,4);
INSERT INTO "proof_messages" VALUES(6,4);
INSERT INTO "proof_messages" VALUES(1,5);
CREATE TABLE proofs (
    id         INTEGER PRIMARY KEY,
    entry_id   INTEGER NOT NULL REFERENCES entries (id) ON DELETE CASCADE,
    created_at INTEGER NOT NULL
, derived INTEGER NOT NULL DEFAULT 0);
INSERT INTO "proofs" VALUES(1,1,1790000060000,0);
INSERT INTO "proofs" VALUES(2,1,1790000060000,0);
INSERT INTO "proofs" VALUES(3,2,1790000060000,0);
INSERT INTO "proofs" VALUES(4,3,1790000060000,0);
INSERT INTO "proofs" VALUES(5,4,1790000060000,0);
INSERT INTO "proofs" VALUES(6,5,1790000060000,1);
CREATE TABLE quarantine (
    chat_id    INTEGER NOT NULL REFERENCES chats (id),
    task       TEXT NOT NULL,
    message_id INTEGER NOT NULL REFERENCES messages (id),
    reason     TEXT NOT NULL,
    at         INTEGER NOT NULL,
    PRIMARY KEY (chat_id, task, message_id)
) WITHOUT ROWID;
INSERT INTO "quarantine" VALUES(2,'member-batch',10,'ModelRefused',1790000060000);
CREATE TABLE reminder_messages (
    reminder_id INTEGER NOT NULL REFERENCES reminders (id) ON DELETE CASCADE,
    message_id  INTEGER NOT NULL REFERENCES messages (id),
    PRIMARY KEY (reminder_id, message_id)
) WITHOUT ROWID;
INSERT INTO "reminder_messages" VALUES(1,4);
CREATE TABLE reminders (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    chat_id    INTEGER NOT NULL REFERENCES chats (id),
    member_id  INTEGER NOT NULL REFERENCES members (id),
    due_at     INTEGER NOT NULL,
    next_at    INTEGER NOT NULL,
    text       TEXT NOT NULL,
    state      TEXT NOT NULL
        CHECK (state IN ('open', 'sending', 'sent', 'failed', 'cancelled', 'dropped')),
    attempts   INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL,
    tried_at   INTEGER,
    ended_at   INTEGER,
    sent_row   INTEGER REFERENCES messages (id),
    error      TEXT NOT NULL DEFAULT ''
);
INSERT INTO "reminders" VALUES(1,1,1,1790003600000,1790003600000,'出发','open',0,1790000000000,NULL,NULL,NULL,'');
CREATE TABLE requests (
    id          INTEGER PRIMARY KEY,
    bot_id      TEXT NOT NULL,
    kind        TEXT NOT NULL CHECK (kind IN ('friend', 'group_add', 'group_invite')),
    flag        TEXT NOT NULL,
    user_id     TEXT NOT NULL,
    group_id    TEXT NOT NULL DEFAULT '',
    comment     TEXT NOT NULL DEFAULT '',
    arrived_at  INTEGER NOT NULL,
    approved_at INTEGER,
    approved_by TEXT,
    UNIQUE (bot_id, flag)
);
INSERT INTO "requests" VALUES(1,'10001','friend','flag-1','30002','','你好',1790000000000,NULL,NULL);
CREATE TABLE revisions (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    stream_id INTEGER NOT NULL REFERENCES streams (id),
    task_id   INTEGER REFERENCES tasks (id),
    at        INTEGER NOT NULL,
    by        TEXT NOT NULL,
    why       TEXT NOT NULL,
    before    TEXT NOT NULL,
    after     TEXT NOT NULL
);
INSERT INTO "revisions" VALUES(1,1,1,1790000060000,'group','idle','{"entries": [], "summary": {"text": "", "messages": []}}','{"entries": [{"number": 1, "document": "memory", "type": null, "date": "2026-09-21", "text": "七点出发", "tier": "episodic", "pinned": false, "setAside": false, "proofs": [[4, 5], [1]], "sourceTask": "group", "createdAt": 1790000060000, "updatedAt": 1790000060000}], "summary": {"text": "大家约好明天出发", "messages": [2, 4]}}');
INSERT INTO "revisions" VALUES(2,2,1,1790000060000,'group','idle','{"entries": []}','{"entries": [{"number": 1, "document": "profile", "type": "name", "date": null, "text": "叫小鱼", "tier": "profile", "pinned": false, "setAside": false, "proofs": [[1]], "sourceTask": "member-batch", "createdAt": 1790000060000, "updatedAt": 1790000060000}, {"number": 3, "document": "memory", "type": null, "date": "2026-09-21", "text": "去湖边钓鱼", "tier": "episodic", "pinned": false, "setAside": false, "proofs": [[4]], "sourceTask": "compress", "createdAt": 1790000060000, "updatedAt": 1790000060000}]}');
CREATE TABLE schema_steps (
    version    INTEGER PRIMARY KEY,
    name       TEXT NOT NULL,
    applied_at INTEGER NOT NULL
);
INSERT INTO "schema_steps" VALUES(1,'0001_initial',1790000000000);
INSERT INTO "schema_steps" VALUES(2,'0002_memory',1790000000000);
INSERT INTO "schema_steps" VALUES(3,'0003_compression',1790000000000);
INSERT INTO "schema_steps" VALUES(4,'0004_recollection',1790000000000);
INSERT INTO "schema_steps" VALUES(5,'0005_tool_history',1790000000000);
INSERT INTO "schema_steps" VALUES(6,'0006_tools',1790000000000);
INSERT INTO "schema_steps" VALUES(7,'0007_images',1790000000000);
INSERT INTO "schema_steps" VALUES(8,'0008_message_search',1790000000000);
INSERT INTO "schema_steps" VALUES(9,'0009_sessions',1790000000000);
INSERT INTO "schema_steps" VALUES(10,'0010_vectors',1790000000000);
CREATE TABLE scopes (
    id          INTEGER PRIMARY KEY,
    bot_id      TEXT NOT NULL,
    kind        TEXT NOT NULL CHECK (kind IN ('group', 'member')),
    key         TEXT NOT NULL,
    next_number INTEGER NOT NULL DEFAULT 1,
    UNIQUE (bot_id, kind, key)
);
INSERT INTO "scopes" VALUES(1,'10001','group','20001',3);
INSERT INTO "scopes" VALUES(2,'10001','member','30001',4);
CREATE TABLE session_messages (
    message_id INTEGER NOT NULL REFERENCES messages (id),
    chat_id    INTEGER NOT NULL REFERENCES chats (id),
    turn_id    INTEGER NOT NULL,
    PRIMARY KEY (message_id, chat_id)
) WITHOUT ROWID;
INSERT INTO "session_messages" VALUES(1,1,1);
CREATE TABLE session_versions (
    chat_id INTEGER NOT NULL REFERENCES chats (id),
    turn_id INTEGER NOT NULL,
    summary TEXT NOT NULL,
    PRIMARY KEY (chat_id, turn_id)
) WITHOUT ROWID;
INSERT INTO "session_versions" VALUES(1,1,'{"key_decisions": [], "past_discussions": [], "current_discussion": "出发"}');
CREATE TABLE sessions (
    chat_id        INTEGER PRIMARY KEY REFERENCES chats (id),
    window_start   INTEGER NOT NULL DEFAULT 0,
    window_turns   INTEGER NOT NULL DEFAULT 0,
    compactions    INTEGER NOT NULL DEFAULT 0,
    summary        TEXT NOT NULL DEFAULT '',
    summary_cursor INTEGER,
    new_turns      INTEGER NOT NULL DEFAULT 0,
    version        INTEGER NOT NULL DEFAULT 0,
    cleared_turn   INTEGER NOT NULL DEFAULT 0,
    cleared_before INTEGER NOT NULL DEFAULT 0
);
INSERT INTO "sessions" VALUES(1,0,1,0,'{"key_decisions": [], "past_discussions": [], "current_discussion": "出发"}',1,0,0,0,0);
CREATE TABLE settings (
    key        TEXT NOT NULL,
    chat_id    INTEGER REFERENCES chats (id),
    value      TEXT NOT NULL,
    changed_at INTEGER NOT NULL,
    changed_by TEXT NOT NULL
);
INSERT INTO "settings" VALUES('memoryMemberBatchEnabled',NULL,'false',1790000000000,'30001');
INSERT INTO "settings" VALUES('replyMode',1,'"auto"',1790000000000,'30001');
CREATE TABLE snapshots (
    chat_id     INTEGER NOT NULL REFERENCES chats (id),
    scope_id    INTEGER NOT NULL REFERENCES scopes (id),
    text        TEXT NOT NULL,
    shown       TEXT NOT NULL DEFAULT '[]',
    hash        TEXT NOT NULL,
    streams     TEXT NOT NULL,
    across      INTEGER NOT NULL,
    version     INTEGER NOT NULL,
    compactions INTEGER NOT NULL,
    injected_at INTEGER NOT NULL,
    active_at   INTEGER NOT NULL,
    stale       INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (chat_id, scope_id)
) WITHOUT ROWID;
INSERT INTO "snapshots" VALUES(1,1,'【记忆】大家约好明天出发','[]','0000000000000000000000000000000000000000000000000000000000000000','[1]',1,2,0,1790000060000,1790000060000,0);
INSERT INTO "snapshots" VALUES(1,2,'【记忆】大家约好明天出发','[]','0000000000000000000000000000000000000000000000000000000000000000','[2]',1,1,0,1790000060000,1790000060000,0);
CREATE TABLE spaces (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    embedder   TEXT NOT NULL,
    dimensions INTEGER NOT NULL,
    newest     INTEGER NOT NULL,
    oldest     INTEGER NOT NULL
);
INSERT INTO "spaces" VALUES(1,'frozen',8,13,1);
CREATE TABLE streams (
    id         INTEGER PRIMARY KEY,
    scope_id   INTEGER NOT NULL REFERENCES scopes (id),
    chat_id    INTEGER NOT NULL REFERENCES chats (id),
    summary    TEXT NOT NULL DEFAULT '',
    version    INTEGER NOT NULL DEFAULT 0,
    changed_at INTEGER NOT NULL,
    UNIQUE (scope_id, chat_id)
);
INSERT INTO "streams" VALUES(1,1,1,'大家约好明天出发',2,1790000060000);
INSERT INTO "streams" VALUES(2,2,1,'',1,1790000060000);
CREATE TABLE summary_messages (
    stream_id  INTEGER NOT NULL REFERENCES streams (id) ON DELETE CASCADE,
    message_id INTEGER NOT NULL REFERENCES messages (id),
    PRIMARY KEY (stream_id, message_id)
) WITHOUT ROWID;
INSERT INTO "summary_messages" VALUES(1,2);
INSERT INTO "summary_messages" VALUES(1,4);
CREATE TABLE tasks (
    id          INTEGER PRIMARY KEY,
    chat_id     INTEGER NOT NULL REFERENCES chats (id),
    scope       TEXT NOT NULL,
    task        TEXT NOT NULL,
    state       TEXT NOT NULL CHECK (state IN ('queued', 'running', 'done', 'failed', 'stopped')),
    reason      TEXT NOT NULL DEFAULT '',
    attempts    INTEGER NOT NULL DEFAULT 0,
    next_run_at INTEGER NOT NULL,
    lease_owner TEXT,
    lease_until INTEGER,
    error       TEXT NOT NULL DEFAULT '',
    created_at  INTEGER NOT NULL,
    finished_at INTEGER
, after_id INTEGER, last_id INTEGER, messages INTEGER NOT NULL DEFAULT 0, calls INTEGER NOT NULL DEFAULT 0, tokens INTEGER NOT NULL DEFAULT 0, counts TEXT NOT NULL DEFAULT '{}', stream_id INTEGER REFERENCES streams (id), chunk INTEGER, unusable INTEGER NOT NULL DEFAULT 0, refusals TEXT NOT NULL DEFAULT '[]');
INSERT INTO "tasks" VALUES(1,1,'group','group','queued','idle',0,1790000900000,NULL,NULL,'',1790000000000,NULL,NULL,NULL,0,0,0,'{}',NULL,NULL,0,'[]');
INSERT INTO "tasks" VALUES(2,2,'member','member-batch','running','count',0,1790000000000,'example:8080',1790000180000,'',1790000000000,NULL,NULL,NULL,0,0,0,'{}',NULL,NULL,0,'[]');
CREATE TABLE tool_messages (
    message_id INTEGER NOT NULL REFERENCES messages (id),
    turn_id    INTEGER NOT NULL REFERENCES turns (id) ON DELETE CASCADE,
    PRIMARY KEY (message_id, turn_id)
) WITHOUT ROWID;
INSERT INTO "tool_messages" VALUES(1,1);
CREATE TABLE turn_lines (
    turn_id    INTEGER NOT NULL REFERENCES turns (id) ON DELETE CASCADE,
    position   INTEGER NOT NULL,
    message_id INTEGER REFERENCES messages (id),
    part       TEXT NOT NULL CHECK (part IN ('context', 'quote', 'question', 'answer')),
    text       TEXT NOT NULL,
    PRIMARY KEY (turn_id, position)
) WITHOUT ROWID;
INSERT INTO "turn_lines" VALUES(1,0,3,'context','{"text":"旁边的话"}');
INSERT INTO "turn_lines" VALUES(1,1,2,'quote','{"text":"引用的话"}');
INSERT INTO "turn_lines" VALUES(1,2,4,'question','{"text":"明天七点出发"}');
INSERT INTO "turn_lines" VALUES(1,3,5,'answer','好，明天七点');
CREATE TABLE turns (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    chat_id       INTEGER NOT NULL REFERENCES chats (id),
    member_id     INTEGER NOT NULL REFERENCES members (id),
    state         TEXT NOT NULL CHECK (state IN ('sending', 'sent', 'silent', 'failed', 'recalled')),
    asked_at      INTEGER NOT NULL,
    started_at    INTEGER NOT NULL,
    answered_at   INTEGER NOT NULL,
    addressed     INTEGER NOT NULL,
    third_party   INTEGER NOT NULL,
    context_until INTEGER NOT NULL,
    model         TEXT NOT NULL,
    endpoint      TEXT NOT NULL,
    error         TEXT NOT NULL DEFAULT ''
, tools TEXT NOT NULL DEFAULT '');
INSERT INTO "turns" VALUES(1,1,1,'sent',1790000003000,1790000003000,1790000004000,1,1,4,'example-model','default','','[{"model": "example-model", "text": "", "uses": [{"call_id": "call_0", "name": "chat_history", "arguments": "{}", "result": "{\"text\":\"早\"}", "message_ids": [1]}]}]');
CREATE TABLE usage (
    id                INTEGER PRIMARY KEY,
    at                INTEGER NOT NULL,
    purpose           TEXT NOT NULL,
    model             TEXT NOT NULL,
    endpoint          TEXT NOT NULL,
    chat_id           INTEGER REFERENCES chats (id),
    duration_ms       INTEGER NOT NULL,
    prompt_tokens     INTEGER NOT NULL,
    cached_tokens     INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL,
    ok                INTEGER NOT NULL,
    error             TEXT NOT NULL DEFAULT ''
);
INSERT INTO "usage" VALUES(1,1790000000000,'chat','example-model','default',NULL,800,90,30,9,1,'');
CREATE TABLE vector_pages (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    space_id INTEGER NOT NULL REFERENCES spaces (id),
    chat_id  INTEGER NOT NULL REFERENCES chats (id),
    filled   INTEGER NOT NULL,
    changed  INTEGER NOT NULL,
    slots    BLOB NOT NULL
);
INSERT INTO "vector_pages" VALUES(1,1,4,1,9,X'00000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000');
INSERT INTO "vector_pages" VALUES(2,1,3,1,4,X'0B00000000000000288F50C4A0010000010000000000000053A343D39DCC44B188B58652C4CF192EC27F2FF2D8956EAB6BF724C9281959BE2990AAC3986A3AE940A3F28692F467DB7378C390A0ABB3201BBB2F6688A4F651');
INSERT INTO "vector_pages" VALUES(3,1,2,1,6,X'0A00000000000000006C50C4A0010000020000000000000053A343D39DCC44B188B58652C4CF192EC27F2FF2D8956EAB6BF724C9281959BE2990AAC3986A3AE940A3F28692F467DB7378C390A0ABB3201BBB2F6688A4F651');
INSERT INTO "vector_pages" VALUES(4,1,1,7,8,X'0700000000000000708350C4A0010000040000000000000053A343D39DCC44B188B58652C4CF192EC27F2FF2D8956EAB6BF724C9281959BE2990AAC3986A3AE940A3F28692F467DB7378C390A0ABB3201BBB2F6688A4F6510600000000000000887F50C4A0010000010000000000000053A343D39DCC44B188B58652C4CF192EC27F2FF2D8956EAB6BF724C9281959BE2990AAC3986A3AE940A3F28692F467DB7378C390A0ABB3201BBB2F6688A4F6510500000000000000A07B50C4A0010000030000000000000053A343D39DCC44B188B58652C4CF192EC27F2FF2D8956EAB6BF724C9281959BE2990AAC3986A3AE940A3F28692F467DB7378C390A0ABB3201BBB2F6688A4F6510400000000000000B87750C4A0010000010000000000000053A343D39DCC44B188B58652C4CF192EC27F2FF2D8956EAB6BF724C9281959BE2990AAC3986A3AE940A3F28692F467DB7378C390A0ABB3201BBB2F6688A4F6510300000000000000D07350C4A0010000020000000000000053A343D39DCC44B188B58652C4CF192EC27F2FF2D8956EAB6BF724C9281959BE2990AAC3986A3AE940A3F28692F467DB7378C390A0ABB3201BBB2F6688A4F6510200000000000000E86F50C4A0010000010000000000000053A343D39DCC44B188B58652C4CF192EC27F2FF2D8956EAB6BF724C9281959BE2990AAC3986A3AE940A3F28692F467DB7378C390A0ABB3201BBB2F6688A4F6510100000000000000006C50C4A0010000010000000000000053A343D39DCC44B188B58652C4CF192EC27F2FF2D8956EAB6BF724C9281959BE2990AAC3986A3AE940A3F28692F467DB7378C390A0ABB3201BBB2F6688A4F651');
CREATE TABLE vector_requests (
    message_id INTEGER PRIMARY KEY REFERENCES messages (id) ON DELETE CASCADE
);
INSERT INTO "vector_requests" VALUES(13);
CREATE UNIQUE INDEX names_identity ON names (member_id, coalesce(chat_id, 0), name);
CREATE INDEX messages_by_time ON messages (chat_id, sent_at);
CREATE INDEX messages_by_arrival ON messages (received_at);
CREATE INDEX tasks_due ON tasks (next_run_at) WHERE state = 'queued';
CREATE INDEX turns_by_chat ON turns (chat_id, state);
CREATE INDEX turns_by_start ON turns (started_at);
CREATE INDEX turns_by_member ON turns (member_id, started_at);
CREATE INDEX turn_lines_by_message ON turn_lines (message_id);
CREATE UNIQUE INDEX settings_identity ON settings (key, coalesce(chat_id, 0));
CREATE INDEX usage_by_time ON usage (at);
CREATE UNIQUE INDEX notices_identity ON notices (chat_id, kind, coalesce(member_id, 0));
CREATE INDEX streams_by_chat ON streams (chat_id);
CREATE INDEX summary_messages_by_message ON summary_messages (message_id);
CREATE INDEX proofs_by_entry ON proofs (entry_id);
CREATE INDEX proof_messages_by_message ON proof_messages (message_id);
CREATE INDEX ending_messages_by_message ON ending_messages (message_id);
CREATE INDEX revisions_by_stream ON revisions (stream_id, id);
CREATE INDEX revisions_by_task ON revisions (task_id);
CREATE INDEX cursors_by_newest ON cursors (task, newest_pending_at) WHERE pending > 0;
CREATE INDEX cursors_by_oldest ON cursors (task, oldest_pending_at) WHERE pending > 0;
CREATE INDEX cursors_by_pending ON cursors (task, pending) WHERE pending > 0;
CREATE INDEX cursors_behind ON cursors (task) WHERE pending > 0 AND due_until > last_id;
CREATE INDEX tasks_by_chat ON tasks (chat_id, id);
CREATE INDEX tasks_leased ON tasks (lease_until) WHERE state = 'running';
CREATE INDEX messages_by_row ON messages (chat_id, id);
CREATE INDEX entry_sources_by_source ON entry_sources (source_id);
CREATE UNIQUE INDEX tasks_open ON tasks (chat_id, task, coalesce(stream_id, 0))
WHERE state IN ('queued', 'running');
CREATE VIEW place_documents (place, document) AS VALUES
    ('group', 'profile'), ('group', 'daily'), ('group', 'memory'), ('group', 'note'),
    ('here', 'profile'), ('here', 'pattern'), ('here', 'note'),
    ('elsewhere', 'profile'), ('elsewhere', 'pattern'),
    ('own', 'profile'), ('own', 'pattern'), ('own', 'daily'), ('own', 'memory'), ('own', 'note');
CREATE INDEX entries_living ON entries (stream_id, document, date, updated_at, number)
WHERE ended_at IS NULL;
CREATE INDEX entries_pinned ON entries (stream_id) WHERE ended_at IS NULL AND pinned = 1;
CREATE INDEX messages_own ON messages (chat_id, sent_at) WHERE direction = 'outbound';
CREATE INDEX snapshots_by_scope ON snapshots (scope_id);
CREATE TRIGGER entry_erased AFTER UPDATE OF text ON entries
WHEN new.text = '' AND old.text <> '' BEGIN
    DELETE FROM entry_index WHERE rowid = old.id;
END;
CREATE TRIGGER entry_deleted AFTER DELETE ON entries BEGIN
    DELETE FROM entry_index WHERE rowid = old.id;
END;
CREATE INDEX turns_with_tools ON turns (chat_id, id) WHERE tools <> '';
CREATE INDEX tool_messages_by_turn ON tool_messages (turn_id);
CREATE INDEX reminders_due ON reminders (next_at) WHERE state = 'open';
CREATE INDEX reminders_open ON reminders (member_id) WHERE state = 'open';
CREATE INDEX reminders_ended ON reminders (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX reminder_messages_by_message ON reminder_messages (message_id);
CREATE UNIQUE INDEX lessons_identity ON lessons (tool, coalesce(chat_id, 0), symptom);
CREATE INDEX image_descriptions_by_hash ON image_descriptions (hash);
CREATE TRIGGER image_description_erased AFTER UPDATE OF text, recalled_at, forgotten_at ON messages
WHEN new.text = '' OR new.recalled_at IS NOT NULL OR new.forgotten_at IS NOT NULL BEGIN
    DELETE FROM image_descriptions WHERE message_id = new.id;
END;
CREATE TRIGGER message_changed
AFTER UPDATE OF chat_id, member_id, local_date, kind, text, recalled_at, forgotten_at ON messages
WHEN (
    old.chat_id <> new.chat_id OR old.member_id <> new.member_id
    OR old.local_date <> new.local_date OR old.kind <> new.kind OR old.text <> new.text
    OR old.recalled_at IS NOT new.recalled_at OR old.forgotten_at IS NOT new.forgotten_at
) AND EXISTS (
    SELECT 1 FROM message_index_state WHERE old.id BETWEEN filled_from AND filled_until
) BEGIN
    INSERT INTO message_index (message_index, rowid, tokens)
    SELECT 'delete', old.id,
        message_tokens(old.chat_id, old.member_id, old.local_date, old.text)
    WHERE old.kind = 'chat' AND old.text <> '' AND old.recalled_at IS NULL
      AND old.forgotten_at IS NULL;
    INSERT INTO message_index (rowid, tokens)
    SELECT new.id, message_tokens(new.chat_id, new.member_id, new.local_date, new.text)
    WHERE new.kind = 'chat' AND new.text <> '' AND new.recalled_at IS NULL
      AND new.forgotten_at IS NULL;
    UPDATE message_index_state SET erased = 1 WHERE erased <> 1;
END;
CREATE TRIGGER message_deleted AFTER DELETE ON messages
WHEN old.kind = 'chat' AND old.text <> '' AND old.recalled_at IS NULL
    AND old.forgotten_at IS NULL AND EXISTS (
        SELECT 1 FROM message_index_state WHERE old.id BETWEEN filled_from AND filled_until
    )
BEGIN
    INSERT INTO message_index (message_index, rowid, tokens)
    VALUES ('delete', old.id,
        message_tokens(old.chat_id, old.member_id, old.local_date, old.text));
    UPDATE message_index_state SET erased = 1 WHERE erased <> 1;
END;
CREATE INDEX messages_replies ON messages (chat_id, reply_to) WHERE reply_to IS NOT NULL;
CREATE INDEX sessions_by_window ON sessions (window_turns);
CREATE INDEX sessions_by_new ON sessions (new_turns);
CREATE INDEX session_messages_by_turn ON session_messages (chat_id, turn_id);
CREATE TRIGGER turn_told AFTER UPDATE OF state ON turns
WHEN new.state = 'sent' AND old.state <> 'sent' BEGIN
    INSERT INTO sessions (chat_id, window_turns, summary_cursor, new_turns)
    VALUES (new.chat_id, 1, 0, 1)
    ON CONFLICT (chat_id) DO UPDATE SET
        window_turns = window_turns + (new.id > window_start),
        new_turns = new_turns + (new.id > coalesce(summary_cursor, 0));
END;
CREATE TRIGGER turn_gone AFTER UPDATE OF state ON turns
WHEN new.state <> 'sent' AND old.state = 'sent' BEGIN
    UPDATE sessions
    SET window_turns = max(0, window_turns - (old.id > window_start)),
        new_turns = max(0, new_turns - (old.id > coalesce(summary_cursor, 0)))
    WHERE chat_id = old.chat_id;
END;
CREATE INDEX vector_pages_of_chat ON vector_pages (space_id, chat_id, changed);
CREATE INDEX vector_pages_changed ON vector_pages (changed);
CREATE TRIGGER vector_erased AFTER UPDATE OF text, recalled_at, forgotten_at ON messages
WHEN new.text <> old.text OR new.recalled_at IS NOT old.recalled_at
    OR new.forgotten_at IS NOT old.forgotten_at
BEGIN
    DELETE FROM message_vectors WHERE message_id = old.id;
    DELETE FROM vector_requests WHERE message_id = old.id;
    INSERT INTO vector_requests (message_id)
    SELECT new.id
    WHERE new.text <> '' AND new.recalled_at IS NULL AND new.forgotten_at IS NULL
      AND EXISTS (SELECT 1 FROM spaces WHERE new.id BETWEEN oldest AND newest);
END;
CREATE TRIGGER sketch_erased AFTER DELETE ON message_vectors BEGIN
    UPDATE vector_pages
    SET slots = CAST(
            substr(slots, 1, old.slot * 88) || zeroblob(88) || substr(slots, old.slot * 88 + 89)
            AS BLOB
        ),
        changed = (SELECT max(changed) + 1 FROM vector_pages)
    WHERE id = old.page_id;
END;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('messages',13);
INSERT INTO "sqlite_sequence" VALUES('turns',1);
INSERT INTO "sqlite_sequence" VALUES('revisions',2);
INSERT INTO "sqlite_sequence" VALUES('reminders',1);
INSERT INTO "sqlite_sequence" VALUES('lessons',1);
INSERT INTO "sqlite_sequence" VALUES('spaces',1);
INSERT INTO "sqlite_sequence" VALUES('vector_pages',4);
PRAGMA writable_schema=ON;
INSERT INTO sqlite_master (type, name, tbl_name, sql, rootpage) VALUES ('table', 'entry_index', 'entry_index', 'CREATE VIRTUAL TABLE entry_index USING fts5 (stream, words, pairs, tokenize = ''porter unicode61'')', 0);
INSERT INTO sqlite_master (type, name, tbl_name, sql, rootpage) VALUES ('table', 'message_index', 'message_index', 'CREATE VIRTUAL TABLE message_index USING fts5 (
    tokens, content = '''', detail = none, columnsize = 0, tokenize = ''porter ascii''
)', 0);
PRAGMA writable_schema=OFF;
COMMIT;
