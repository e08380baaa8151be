-- A knowledge database as its programs create it today: every column nullable or defaulted as in
-- real files, no CHECK constraints, no schema version, and no index that starts with a concept.

CREATE TABLE projects (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL UNIQUE,
  description TEXT NOT NULL DEFAULT '',
  status TEXT NOT NULL DEFAULT 'active',
  created_at DATETIME DEFAULT CURRENT_TIMESTAMP,
  updated_at DATETIME DEFAULT CURRENT_TIMESTAMP,
  uuid TEXT NOT NULL DEFAULT '',
  origin_host TEXT NOT NULL DEFAULT ''
);

CREATE TABLE observations (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  project_id INTEGER REFERENCES projects(id) ON DELETE CASCADE,
  kind TEXT NOT NULL DEFAULT 'note',
  body TEXT NOT NULL,
  created_at DATETIME DEFAULT CURRENT_TIMESTAMP,
  source_doi TEXT NOT NULL DEFAULT '',
  uuid TEXT NOT NULL DEFAULT '',
  origin_host TEXT NOT NULL DEFAULT ''
);

CREATE TABLE concepts (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL UNIQUE,
  description TEXT NOT NULL DEFAULT '',
  created_at DATETIME DEFAULT CURRENT_TIMESTAMP,
  updated_at DATETIME,
  identifier_type TEXT NOT NULL DEFAULT '',
  identifier_value TEXT NOT NULL DEFAULT '',
  uuid TEXT NOT NULL DEFAULT '',
  origin_host TEXT NOT NULL DEFAULT ''
);

CREATE TABLE sources (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  title TEXT NOT NULL,
  identifier_type TEXT NOT NULL DEFAULT '',
  identifier_value TEXT NOT NULL DEFAULT '',
  authors TEXT NOT NULL DEFAULT '',
  published_date TEXT NOT NULL DEFAULT '',
  publisher TEXT NOT NULL DEFAULT '',
  rights TEXT NOT NULL DEFAULT '',
  version TEXT NOT NULL DEFAULT '',
  retracted INTEGER NOT NULL DEFAULT 0,
  retraction_note TEXT NOT NULL DEFAULT '',
  first_seen_at DATETIME DEFAULT CURRENT_TIMESTAMP,
  last_checked_at DATETIME DEFAULT CURRENT_TIMESTAMP,
  uuid TEXT NOT NULL DEFAULT '',
  origin_host TEXT NOT NULL DEFAULT ''
);

CREATE TABLE records (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  record_id TEXT NOT NULL,
  project_id INTEGER REFERENCES projects(id) ON DELETE SET NULL,
  scope TEXT NOT NULL DEFAULT 'project',
  path TEXT NOT NULL,
  title TEXT NOT NULL,
  date TEXT NOT NULL,
  status TEXT NOT NULL DEFAULT 'proposed',
  kind TEXT NOT NULL DEFAULT 'decision',
  "trigger" TEXT NOT NULL DEFAULT '',
  phase TEXT NOT NULL DEFAULT '',
  initiative TEXT NOT NULL DEFAULT '',
  session TEXT NOT NULL DEFAULT '',
  body TEXT NOT NULL,
  checksum TEXT NOT NULL DEFAULT '',
  ingested_at DATETIME DEFAULT CURRENT_TIMESTAMP,
  uuid TEXT NOT NULL DEFAULT '',
  origin_host TEXT NOT NULL DEFAULT '',
  workspace TEXT NOT NULL DEFAULT ''
);

CREATE TABLE documents (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  project_id INTEGER REFERENCES projects(id) ON DELETE SET NULL,
  title TEXT NOT NULL,
  format TEXT NOT NULL DEFAULT '',
  path TEXT NOT NULL,
  author TEXT NOT NULL DEFAULT '',
  published_date TEXT NOT NULL DEFAULT '',
  checksum TEXT NOT NULL DEFAULT '',
  ingested_at DATETIME DEFAULT CURRENT_TIMESTAMP,
  uuid TEXT NOT NULL DEFAULT '',
  origin_host TEXT NOT NULL DEFAULT ''
);

CREATE TABLE document_sections (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  document_id INTEGER REFERENCES documents(id) ON DELETE CASCADE,
  level TEXT NOT NULL,
  seq INTEGER NOT NULL DEFAULT 0,
  heading TEXT NOT NULL DEFAULT '',
  body TEXT NOT NULL DEFAULT '',
  summary_body TEXT NOT NULL DEFAULT '',
  summary_status TEXT NOT NULL DEFAULT 'unsummarized',
  summary_stale INTEGER NOT NULL DEFAULT 0,
  source_size INTEGER NOT NULL DEFAULT 0,
  tag_density INTEGER NOT NULL DEFAULT 0,
  confidence REAL,
  generated_by TEXT NOT NULL DEFAULT '',
  created_at DATETIME DEFAULT CURRENT_TIMESTAMP,
  uuid TEXT NOT NULL DEFAULT '',
  origin_host TEXT NOT NULL DEFAULT ''
);

CREATE TABLE observation_concepts (
  observation_id INTEGER REFERENCES observations(id) ON DELETE CASCADE,
  concept_id INTEGER REFERENCES concepts(id) ON DELETE CASCADE,
  PRIMARY KEY (observation_id, concept_id)
);

CREATE TABLE project_concepts (
  project_id INTEGER REFERENCES projects(id) ON DELETE CASCADE,
  concept_id INTEGER REFERENCES concepts(id) ON DELETE CASCADE,
  PRIMARY KEY (project_id, concept_id)
);

CREATE TABLE record_concepts (
  record_id INTEGER REFERENCES records(id) ON DELETE CASCADE,
  concept_id INTEGER REFERENCES concepts(id) ON DELETE CASCADE,
  PRIMARY KEY (record_id, concept_id)
);

CREATE TABLE document_section_concepts (
  section_id INTEGER REFERENCES document_sections(id) ON DELETE CASCADE,
  concept_id INTEGER REFERENCES concepts(id) ON DELETE CASCADE,
  PRIMARY KEY (section_id, concept_id)
);

CREATE TABLE observation_relations (
  from_id INTEGER REFERENCES observations(id) ON DELETE CASCADE,
  to_id INTEGER REFERENCES observations(id) ON DELETE CASCADE,
  relationship TEXT NOT NULL,
  PRIMARY KEY (from_id, to_id, relationship)
);

CREATE TABLE record_relations (
  from_id INTEGER REFERENCES records(id) ON DELETE CASCADE,
  to_id INTEGER REFERENCES records(id) ON DELETE CASCADE,
  relationship TEXT NOT NULL,
  PRIMARY KEY (from_id, to_id, relationship)
);

CREATE TABLE observation_sources (
  observation_id INTEGER REFERENCES observations(id) ON DELETE CASCADE,
  source_id INTEGER REFERENCES sources(id) ON DELETE RESTRICT,
  relationship TEXT NOT NULL DEFAULT 'cited',
  PRIMARY KEY (observation_id, source_id)
);

CREATE UNIQUE INDEX idx_projects_uuid ON projects(uuid);
CREATE UNIQUE INDEX idx_observations_uuid ON observations(uuid);
CREATE UNIQUE INDEX idx_concepts_uuid ON concepts(uuid);
CREATE UNIQUE INDEX idx_sources_uuid ON sources(uuid);
CREATE UNIQUE INDEX idx_records_uuid ON records(uuid);
CREATE UNIQUE INDEX idx_documents_uuid ON documents(uuid);
CREATE UNIQUE INDEX idx_document_sections_uuid ON document_sections(uuid);
CREATE UNIQUE INDEX idx_sources_identifier ON sources(identifier_type, identifier_value)
  WHERE identifier_type <> '' AND identifier_value <> '';
CREATE UNIQUE INDEX idx_records_identity
  ON records(workspace, IFNULL(project_id, -1), scope, record_id);

CREATE VIEW project_summary AS
  SELECT p.id, p.name, p.status, p.description, GROUP_CONCAT(c.name, ', ') AS concepts
  FROM projects p
  LEFT JOIN project_concepts pc ON pc.project_id = p.id
  LEFT JOIN concepts c ON c.id = pc.concept_id
  GROUP BY p.id;
